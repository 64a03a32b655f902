import { type LeaderboardChanges, type Player, type PlayerUsers, Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import { integer, shown, text } from '../../request/parameters.js'
import { player, playerHistory, playerUsers } from '../../routes/player.js'
import { AddToCompare, Card, N, Name, Pager, PlayerLink, Table, Time, UserLink, Watch } from '../components/marks.js'
import { pageOf } from '../components/page-number.js'
import { BoardLink, changeText, gapText, measureText } from '../components/records.js'
import { count, playerPath, plural, withQuery } from '../components/text.js'
import { ask, page, tryAsk } from '../values/page.js'

const BOARDS = 50
const CHANGES = 200
const CHANGES_SHOWN = 30

const playerInput = z.object({
  name: text({ example: 'ann', max: 100 }),
  page: integer({ min: 1, max: 1000 }).default(1)
})

/** `/players/:name`: the boards of a player. */
export const playerPage = page({
  name: 'page-player',
  path: '/players/:name',
  input: playerInput,
  parts: ({ name, page: number }) => ({
    player: ask<Player>(player, { playerName: name, limit: BOARDS, offset: (number - 1) * BOARDS }),
    changes: tryAsk<LeaderboardChanges>(playerHistory, { playerName: name, limit: CHANGES }),
    users: tryAsk<PlayerUsers>(playerUsers, { playerName: name })
  }),
  view: ({ player: found, changes = [], users }, { name, page: given }) => {
    if (found.total === 0 && changes.length === 0) throw new Refusal('player_unknown', [shown(name)])
    const shownName = found.spellings[0] ?? changes[0]?.playerName ?? name
    const path = playerPath(shownName)
    const number = pageOf(given, found.total, BOARDS)
    const leads = found.boards.filter(({ rank }) => rank === 1).length
    const once = changes.filter(({ newRank, previousRank }) => newRank === 1 && previousRank !== 1)
    return {
      title: `${shownName}: ${plural(found.total, 'board')}`,
      description: `On ${plural(found.total, 'board')}, leads ${leads}. Ranks, gaps and changes.`,
      canonical: path,
      isUnlisted: given !== 1,
      picture: `${path}/card.png`,
      feeds: [{ title: `Changes of ${shownName}`, href: `/api/player/${encodeURIComponent(shownName)}/changes.atom` }],
      content: (
        <>
          <section class="head">
            <div class="titled">
              <h1>
                <Name>{shownName}</Name>
              </h1>
              <div class="tools">
                <Watch href={path} name={shownName} />
                <AddToCompare kind="players" id={shownName} name={shownName} />
                <button type="button" class="share" hidden>
                  Share
                </button>
                <a href={`/docs/guide/embed?path=${encodeURIComponent(`/embed${path}`)}`}>Embed</a>
                <a href={`/api/player/${encodeURIComponent(shownName)}/changes.atom`}>Atom</a>
              </div>
            </div>
            <p class="headline">
              <strong>
                <N of={found.total} />
              </strong>{' '}
              {found.total === 1 ? 'board' : 'boards'}, leads {given === 1 ? count(leads) : 'some'}
            </p>
            {found.spellings.length > 1 ? (
              <p class="quiet">Also written {found.spellings.slice(1).join(', ')}.</p>
            ) : null}
            {(users?.users ?? []).map(({ username }) => (
              <p key={username}>
                This gamertag belongs to <UserLink name={username} /> (verified).
              </p>
            ))}
            <form action="/compare/players" class="row">
              <input type="hidden" name="names" value={shownName} />
              <input
                name="with"
                placeholder="Compare with a player"
                aria-label="Player to compare with"
                maxlength={100}
              />
              <button type="submit">Compare</button>
            </form>
          </section>
          <Card title="Boards">
            <Boards boards={found.boards} />
            <Pager {...number} hrefOf={(to) => withQuery(path, { page: to === 1 ? undefined : to })} />
          </Card>
          <div class="columns">
            <Card title="Became the record holder">
              {once.length === 0 ? <p class="quiet">Not while this service watched.</p> : null}
              <ul class="plain feed">
                {once.slice(0, CHANGES_SHOWN).map((change) => (
                  <li key={change.id}>
                    <BoardLink {...change} /> of <Name>{change.gameName}</Name>{' '}
                    <span class="quiet">
                      {measureText(change.newRating, change.newTimeMs, change.isTime)} ·{' '}
                      <Time at={change.changedAt} day />
                    </span>
                  </li>
                ))}
              </ul>
            </Card>
            <Card title="Changes" more={<a href={`/changes?player=${encodeURIComponent(shownName)}`}>All</a>}>
              <ul class="plain feed">
                {changes.slice(0, CHANGES_SHOWN).map((change) => (
                  <li key={change.id}>
                    <BoardLink {...change} />: {changeText(change)}{' '}
                    <span class="quiet">
                      {measureText(change.newRating, change.newTimeMs, change.isTime)} ·{' '}
                      <Time at={change.changedAt} ago />
                    </span>
                  </li>
                ))}
              </ul>
            </Card>
          </div>
        </>
      )
    }
  }
})

function Boards({ boards }: { boards: Player['boards'] }) {
  if (boards.length === 0) return <p class="quiet">On no board now.</p>
  return (
    <Table label="Boards" head={['Board', 'Game', '#Rank', '#Of', '#Value', 'Gap to next', 'Since']}>
      {boards.map((entry) => (
        <tr key={`${entry.titleId}/${entry.leaderboardId}/${entry.playerName}/${entry.rank}`}>
          <th scope="row">
            <BoardLink {...entry} />
          </th>
          <td>
            <Name>{entry.gameName}</Name>
          </td>
          <td class={entry.rank === 1 ? 'number best' : 'number'}>{count(entry.rank)}</td>
          <td class="number">{count(entry.entries)}</td>
          <td class="number">{measureText(entry.rating, entry.timeMs, entry.isTime)}</td>
          <td>
            {entry.next === null ? (
              'Leader'
            ) : (
              <>
                {entry.next.gap === null ? '' : gapText(entry.isTime, entry.next.gap, 0)} to{' '}
                <PlayerLink name={entry.next.playerName} />
              </>
            )}
          </td>
          <td>
            <Time at={entry.observedAt} day />
          </td>
        </tr>
      ))}
    </Table>
  )
}
