import { type LeaderboardChanges, type Player, type PlayerUsers, type RecentRecords, Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import { integer, shown, text } from '../../request/parameters.js'
import { player, playerHistory, playerUsers } from '../../routes/player.js'
import { recentlySetRecords } from '../../routes/record-history.js'
import { Steps } from '../components/chart.js'
import { Choice, CompareWith } from '../components/form.js'
import { Card, N, Name, Time, Tools, UserLink } from '../components/marks.js'
import {
  BoardLink,
  BoardOfGame,
  boardName,
  ChangeFacts,
  changeText,
  GapToNext,
  measureText,
  RecordLine,
  stepsOf
} from '../components/records.js'
import { FeedCard, Pager, pageOf, TableCard } from '../components/table.js'
import { count, groupedBy, playerPath, plural } from '../components/text.js'
import { ask, page, type Query, tryAsk } from '../values/page.js'

const BOARDS = 50
/** The API skips at most 10,000. */
const PAGES_MAX = 201
const CHANGES = 500
const CHANGES_SHOWN = 30
const RECORDS_SHOWN = 10
const ENTRIES_SHOWN = 8

const playerInput = z.object({
  name: text({ example: 'ann', max: 100 }),
  page: integer({ min: 1, max: PAGES_MAX }).default(1),
  entry: text({ example: '4d530064/1', max: 100 }).optional()
})

/** `/players/:name`: the boards of a player. */
export const playerPage = page({
  name: 'page-player',
  path: '/players/:name',
  input: playerInput,
  parts: ({ name, page: number }) => ({
    player: ask<Player>(player, { playerName: name, limit: BOARDS, offset: (number - 1) * BOARDS }),
    changes: tryAsk<LeaderboardChanges>(playerHistory, { playerName: name, limit: CHANGES }),
    records: tryAsk<RecentRecords>(recentlySetRecords, { player: name, limit: RECORDS_SHOWN }),
    users: tryAsk<PlayerUsers>(playerUsers, { playerName: name })
  }),
  view: ({ player: found, changes = [], records = [], users }, { name, page: given, entry }, { query }) => {
    requireSeen(name, found, changes)
    const shownName = found.spellings[0] ?? changes[0]?.playerName ?? name
    const path = playerPath(shownName)
    const atom = `/api/player/${encodeURIComponent(shownName)}/changes.atom`
    const leads = found.boards.filter(({ rank }) => rank === 1).length
    return {
      title: `${shownName}: ${plural(found.total, 'board')}`,
      description: `On ${plural(found.total, 'board')}, leads ${leads}. Ranks, gaps and changes.`,
      canonical: path,
      picture: `${path}/card.png`,
      feeds: [{ title: `Changes of ${shownName}`, href: atom }],
      content: (
        <>
          <section class="head">
            <div class="titled">
              <h1>
                <Name>{shownName}</Name>
              </h1>
              <Tools
                path={path}
                name={shownName}
                embed={`/embed${path}`}
                atom={atom}
                compare={{ kind: 'players', id: shownName }}
              />
            </div>
            <p class="headline">
              <N of={found.total} /> {found.total === 1 ? 'board' : 'boards'}, leads{' '}
              {given === 1 ? count(leads) : 'some'}
            </p>
            {found.spellings.length > 1 ? (
              <p class="quiet">Also written {found.spellings.slice(1).join(', ')}.</p>
            ) : null}
            {(users?.users ?? []).map(({ username }) => (
              <p key={username}>
                This gamertag belongs to <UserLink name={username} /> (verified).
              </p>
            ))}
            <CompareWith player={shownName} />
          </section>
          <TableCard
            title="Boards"
            rows={found.boards}
            empty="On no board now."
            columns={[
              ['Board', (each) => <BoardLink {...each} />],
              ['Game', ({ gameName }) => <Name>{gameName}</Name>],
              ['#Rank', ({ rank }) => count(rank)],
              ['#Of', ({ entries }) => count(entries)],
              ['#Value', ({ rating, timeMs, isTime }) => measureText(rating, timeMs, isTime)],
              ['Gap to next', (each) => <GapToNext {...each} />],
              ['Since', ({ observedAt }) => <Time at={observedAt} day />]
            ]}
          >
            <Pager {...pageOf(given, found.total, BOARDS)} path={path} query={query} />
          </TableCard>
          <EntryHistory changes={changes} entry={entry} path={path} query={query} />
          <div class="columns">
            <FeedCard
              title="Records held, now and once"
              rows={records}
              empty="None while this service watched."
              row={(record) => (
                <>
                  <RecordLine record={record} hasGame /> {record.isCurrent ? <strong>still held</strong> : null}
                </>
              )}
            />
            <FeedCard
              title="Changes"
              more={<a href={`/changes?player=${encodeURIComponent(shownName)}`}>All</a>}
              rows={changes.slice(0, CHANGES_SHOWN)}
              row={(change) => (
                <>
                  <BoardLink {...change} />: {changeText(change)} <ChangeFacts change={change} />
                </>
              )}
            />
          </div>
        </>
      )
    }
  }
})

const nameOf = (change: LeaderboardChanges[number]) => boardName(change.leaderboardId, change.leaderboardName)

type EntryHistoryProps = {
  changes: LeaderboardChanges
  /** `title/board`; without it the entry that changed most. */
  entry: string | undefined
  path: string
  query: Query
}

/** Refuses a player who was never seen on a board. */
export function requireSeen(name: string, { total }: Player, changes: LeaderboardChanges = []): void {
  if (total === 0 && changes.length === 0) throw new Refusal('player_unknown', [shown(name)])
}

/** The entries with changes, most first, each with its values as steps. */
export function changedEntries(changes: LeaderboardChanges) {
  const valued = changes.filter(({ newRating }) => newRating !== null)
  return [...groupedBy(valued, ({ titleId, leaderboardId }) => `${titleId}/${leaderboardId}`)]
    .sort(([, a], [, b]) => b.length - a.length)
    .flatMap(([key, of]) => {
      const values = of.map((each) => ({ at: each.changedAt, rating: each.newRating, timeMs: each.newTimeMs }))
      return of.slice(0, 1).map((newest) => ({ key, newest, steps: stepsOf(nameOf(newest), values, newest.isTime) }))
    })
}

/** The values of one entry over time, with a choice among the entries that changed. */
function EntryHistory({ changes, entry, path, query }: EntryHistoryProps) {
  const entries = changedEntries(changes)
    .filter(({ steps }) => steps.points.length > 1)
    .slice(0, ENTRIES_SHOWN)
  const chosen = entries.find(({ key }) => key === entry) ?? entries[0]
  if (chosen === undefined) return null
  const { key, newest, steps } = chosen
  return (
    <Card title="An entry over time" id="entry">
      <Choice
        label="Entry"
        path={path}
        query={query}
        name="entry"
        values={entries.map((each) => each.key)}
        current={key}
        texts={Object.fromEntries(entries.map((each) => [each.key, nameOf(each.newest)]))}
      />
      <p>
        <BoardOfGame {...newest} />
      </p>
      <Steps {...steps} />
    </Card>
  )
}
