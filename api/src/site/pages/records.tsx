import type { LeaderboardChanges, RecentRecords } from '@gamenet/schemas'
import { z } from 'zod'
import { integer, oneOf, text } from '../../request/parameters.js'
import { leaderboardChanges } from '../../routes/leaderboard-change.js'
import { recentlySetRecords } from '../../routes/record-history.js'
import { Choice, Name, Pager, PlayerLink, Time } from '../components/marks.js'
import { BoardLink, changeText, measureText, RecordList } from '../components/records.js'
import { dayText, groupedBy, withQuery } from '../components/text.js'
import { ask, page } from '../values/page.js'

const ROWS = 50
/** The API skips at most so many. */
const PAGES_MAX = 200

const recordsInput = z.object({
  game: text({ example: 'Halo 2', max: 100 }).optional(),
  player: text({ example: 'ann', max: 100 }).optional(),
  first: integer({ min: 0, max: 1 }).default(0),
  page: integer({ min: 1, max: PAGES_MAX }).default(1)
})
type RecordsInput = z.infer<typeof recordsInput>

/** `/records`: records beaten; first sightings by a switch. */
export const recordsPage = page({
  name: 'page-records',
  path: '/records',
  input: recordsInput,
  parts: ({ game, player, first, page: number }: RecordsInput) => ({
    records: ask<RecentRecords>(recentlySetRecords, {
      game,
      ...(first === 0 ? { contested: 'true' } : {}),
      // The answer has no filter by player: of the newest ones.
      ...(player === undefined ? { limit: ROWS, offset: (number - 1) * ROWS } : { limit: 500 })
    })
  }),
  view: ({ records }, input) => {
    const query = { game: input.game, player: input.player, first: input.first === 0 ? undefined : 1 }
    const named = input.player?.toLowerCase()
    const shown = named === undefined ? records : records.filter(({ playerName }) => playerName.toLowerCase() === named)
    const feed = withQuery('/api/records/recent.atom', {
      contested: input.first === 0 ? 'true' : undefined,
      game: input.game
    })
    return {
      title: 'Records beaten',
      description: 'The newest records on all boards: who beat whom, by how much, and when.',
      canonical: '/records',
      isUnlisted: input.page > 1 || Object.values(query).some((value) => value !== undefined),
      section: '/records',
      feeds: [{ title: 'Records', href: feed }],
      content: (
        <>
          <h1>{input.first === 0 ? 'Records beaten' : 'Records'}</h1>
          <div class="row">
            <Choice
              label="Which records"
              options={[
                {
                  text: 'Beaten',
                  href: withQuery('/records', { ...query, first: undefined }),
                  isCurrent: input.first === 0
                },
                {
                  text: 'With first sightings',
                  href: withQuery('/records', { ...query, first: 1 }),
                  isCurrent: input.first === 1
                }
              ]}
            />
            <Filter action="/records" input={{ game: input.game, player: input.player }} />
            <a href={feed}>Atom</a>
          </div>
          <section class="card">
            <RecordList records={shown} hasGame />
            <Pager
              page={input.page}
              pages={Math.min(PAGES_MAX, input.page + (records.length === ROWS ? 1 : 0))}
              hrefOf={(to) => withQuery('/records', { ...query, page: to === 1 ? undefined : to })}
            />
          </section>
        </>
      )
    }
  }
})

const changesInput = z.object({
  game: text({ example: 'Halo 2', max: 100 }).optional(),
  board: integer({ min: 0, max: 4_294_967_295 }).optional(),
  player: text({ example: 'ann', max: 100 }).optional(),
  type: oneOf(['new', 'updated', 'removed']).optional(),
  page: integer({ min: 1, max: PAGES_MAX }).default(1)
})
type ChangesInput = z.infer<typeof changesInput>

/** `/changes`: every change of every board. */
export const changesPage = page({
  name: 'page-changes',
  path: '/changes',
  input: changesInput,
  parts: ({ game, board, player, type, page: number }: ChangesInput) => ({
    changes: ask<LeaderboardChanges>(leaderboardChanges, {
      ...{ game, leaderboardId: board, player, changeType: type },
      limit: ROWS,
      offset: (number - 1) * ROWS
    })
  }),
  view: ({ changes }, { page: number, ...query }) => ({
    title: 'Board changes',
    description: 'Who entered, improved or left, on every board of every game.',
    canonical: '/changes',
    isUnlisted: number > 1 || Object.values(query).some((value) => value !== undefined),
    section: '/changes',
    content: (
      <>
        <h1>Board changes</h1>
        <div class="row">
          <Filter action="/changes" input={{ game: query.game, player: query.player }} />
          <a
            href={withQuery('/api/leaderboard-changes', {
              game: query.game,
              leaderboardId: query.board,
              player: query.player,
              format: 'csv'
            })}
            rel="nofollow"
          >
            CSV
          </a>
          {query.player === undefined ? null : (
            <a href={`/api/player/${encodeURIComponent(query.player)}/changes.atom`}>Atom</a>
          )}
        </div>
        {changes.length === 0 ? <p class="card">No change matches.</p> : null}
        {[...groupedBy(changes, ({ changedAt }) => changedAt.slice(0, 10))].map(([day, of]) => (
          <section class="card" key={day}>
            <h2>{dayText(day)}</h2>
            <ul class="plain feed">
              {of.map((change) => (
                <li key={change.id}>
                  <PlayerLink name={change.playerName} /> {changeText(change)} on <BoardLink {...change} /> of{' '}
                  <Name>{change.gameName}</Name>{' '}
                  <span class="quiet">
                    {measureText(change.newRating, change.newTimeMs, change.isTime)} ·{' '}
                    <Time at={change.changedAt} ago />
                  </span>
                </li>
              ))}
            </ul>
          </section>
        ))}
        <Pager
          page={number}
          pages={Math.min(PAGES_MAX, number + (changes.length === ROWS ? 1 : 0))}
          hrefOf={(to) => withQuery('/changes', { ...query, page: to === 1 ? undefined : to })}
        />
      </>
    )
  })
})

function Filter({ action, input }: { action: string; input: Readonly<Record<string, string | undefined>> }) {
  return (
    <form action={action} class="row">
      {Object.entries(input).map(([name, value]) => (
        <input
          key={name}
          name={name}
          value={value}
          placeholder={`Of a ${name}`}
          aria-label={`Of a ${name}`}
          maxlength={100}
        />
      ))}
      <button type="submit">Filter</button>
    </form>
  )
}
