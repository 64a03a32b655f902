import type { SearchResults, TimeMatches } from '@gamenet/schemas'
import type { ComponentChildren } from 'preact'
import { z } from 'zod'
import { text } from '../../request/parameters.js'
import { search } from '../../routes/search-result.js'
import { searchByTime } from '../../routes/timed-entry.js'
import { Card, GameLink, Name, PlayerLink, Table, UserLink } from '../components/marks.js'
import { BoardLink } from '../components/records.js'
import { count, plural } from '../components/text.js'
import { type Part, page, tryAsk } from '../values/page.js'

const LIMIT = 20
const TIME = /^(?:\d{1,5}:[0-5]\d|[0-5]?\d{1,6})\.\d{3}$/
const TOLERANCE_MS = 100

const searchInput = z.object({ q: text({ example: 'halo', max: 500 }).optional() })
type SearchInput = z.infer<typeof searchInput>
type SearchParts = { names?: Part<SearchResults | undefined>; runs?: Part<TimeMatches | undefined> }

/** `/search`: games, boards, players and users in one list; a time finds entries. */
export const searchPage = page({
  name: 'page-search',
  path: '/search',
  input: searchInput,
  parts: ({ q }: SearchInput): SearchParts => {
    const words = q?.trim() ?? ''
    if (words === '') return {}
    return {
      names: tryAsk<SearchResults>(search, { q: words, limit: LIMIT }),
      ...(TIME.test(words)
        ? { runs: tryAsk<TimeMatches>(searchByTime, { time: words, tolerance: TOLERANCE_MS, limit: 100 }) }
        : {})
    }
  },
  view: ({ names = [], runs }, { q }) => {
    const games = names.filter((each) => each.kind === 'game')
    const boards = names.filter((each) => each.kind === 'board')
    const players = names.filter(({ kind }) => kind === 'player')
    const users = names.filter(({ kind }) => kind === 'user')
    return {
      title: q === undefined ? 'Search' : `Search for ${q}`,
      canonical: '/search',
      isUnlisted: true,
      content: (
        <>
          <h1>Search</h1>
          <form action="/search" class="row">
            <input
              type="search"
              name="q"
              value={q}
              maxlength={500}
              aria-label="Search games, boards, players and times"
            />
            <button type="submit">Search</button>
          </form>
          {q === undefined ? <p>Enter a name, or find a run by time. Enter a time such as 1:02.345.</p> : null}
          {q !== undefined && names.length === 0 && (runs?.count ?? 0) === 0 ? (
            <p class="card">
              Nothing matches. Games and boards need all words; players and users begin with them. See{' '}
              <a href="/games">all games</a>.
            </p>
          ) : null}
          {runs === undefined ? null : <Runs runs={runs} />}
          <div class="columns">
            <List title="Games" rows={games.map((game) => <GameLink key={game.titleId} {...game} />)} />
            <List
              title="Boards"
              rows={boards.map((board) => (
                <>
                  <BoardLink {...board} leaderboardName={board.name} />{' '}
                  <span class="quiet">
                    of <Name>{board.gameName}</Name>
                  </span>
                </>
              ))}
            />
            <List title="Players" rows={players.map(({ name }) => <PlayerLink key={name} name={name} />)} />
            <List title="Users" rows={users.map(({ name }) => <UserLink key={name} name={name} />)} />
          </div>
        </>
      )
    }
  }
})

function List({ title, rows }: { title: string; rows: readonly ComponentChildren[] }) {
  if (rows.length === 0) return null
  return (
    <Card title={`${title} (${count(rows.length)}${rows.length === LIMIT ? ' first' : ''})`}>
      <ul class="plain">
        {rows.map((row, index) => (
          <li key={index}>{row}</li>
        ))}
      </ul>
    </Card>
  )
}

function Runs({ runs: { results, searchTime, tolerance, count: number } }: { runs: TimeMatches }) {
  return (
    <Card title={`${plural(number, 'run')} within ${tolerance / 1000} s of ${searchTime}`}>
      {results.length === 0 ? null : (
        <Table label="Runs" head={['#Time', 'Player', 'Board', 'Game', '#Rank']}>
          {results.map((run) => (
            <tr key={run.id}>
              <td class="number">{run.time_formatted}</td>
              <th scope="row">
                <PlayerLink name={run.player_name} />
              </th>
              <td>
                <BoardLink
                  titleId={run.title_id}
                  gameName={run.game_name}
                  leaderboardId={run.leaderboard_id}
                  leaderboardName={run.leaderboard_name}
                />
              </td>
              <td>
                <Name>{run.game_name}</Name>
              </td>
              <td class="number">{run.rank}</td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  )
}
