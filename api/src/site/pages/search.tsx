import type { SearchResults, TimeMatches } from '@gamenet/schemas'
import { z } from 'zod'
import { text } from '../../request/parameters.js'
import { search } from '../../routes/search-result.js'
import { searchByTime } from '../../routes/timed-entry.js'
import { SearchForm } from '../components/form.js'
import { GameLink, Name, PlayerLink, UserLink } from '../components/marks.js'
import { BoardLink, BoardOfGame } from '../components/records.js'
import { FeedCard, TableCard } from '../components/table.js'
import { count, plural } from '../components/text.js'
import { type Part, page, tryAsk } from '../values/page.js'

const LIMIT = 20
const TIME = /^(?:\d{1,5}:[0-5]\d|[0-5]?\d{1,6})\.\d{3}$/
const TOLERANCE_MS = 100
const KINDS = { game: 'Games', board: 'Boards', player: 'Players', user: 'Users' } as const

type SearchParts = { names?: Part<SearchResults | undefined>; runs?: Part<TimeMatches | undefined> }

/** `/search`: games, boards, players and users in one list; a time finds entries. */
export const searchPage = page({
  name: 'page-search',
  path: '/search',
  input: z.object({ q: text({ example: 'halo', max: 500 }).optional() }),
  parts: ({ q }): SearchParts => {
    const words = q?.trim() ?? ''
    if (words === '') return {}
    return {
      names: tryAsk<SearchResults>(search, { q: words, limit: LIMIT }),
      ...(TIME.test(words)
        ? { runs: tryAsk<TimeMatches>(searchByTime, { time: words, tolerance: TOLERANCE_MS, limit: 100 }) }
        : {})
    }
  },
  view: ({ names = [], runs }, { q }) => ({
    title: q === undefined ? 'Search' : `Search for ${q}`,
    canonical: '/search',
    isUnlisted: true,
    content: (
      <>
        <h1>Search</h1>
        <SearchForm words={q} />
        {q === undefined ? <p>Enter a name, or find a run by time. Enter a time such as 1:02.345.</p> : null}
        {q !== undefined && names.length === 0 && (runs?.count ?? 0) === 0 ? (
          <p class="card">
            Nothing matches. Games and boards need all words; players and users begin with them. See{' '}
            <a href="/games">all games</a>.
          </p>
        ) : null}
        {runs === undefined ? null : <Runs runs={runs} />}
        <div class="columns">
          {Object.entries(KINDS).map(([kind, title]) => {
            const rows = names.filter((each) => each.kind === kind)
            if (rows.length === 0) return null
            const heading = `${title} (${count(rows.length)}${rows.length === LIMIT ? ' first' : ''})`
            return <FeedCard key={kind} title={heading} rows={rows} row={(found) => <Found found={found} />} />
          })}
        </div>
      </>
    )
  })
})

function Found({ found }: { found: SearchResults[number] }) {
  if (found.kind === 'game') return <GameLink {...found} />
  if (found.kind === 'board') return <BoardOfGame {...found} leaderboardName={found.name} />
  return found.kind === 'player' ? <PlayerLink name={found.name} /> : <UserLink name={found.name} />
}

function Runs({ runs: { results, searchTime, tolerance, count: number } }: { runs: TimeMatches }) {
  return (
    <TableCard
      title={`${plural(number, 'run')} within ${tolerance / 1000} s of ${searchTime}`}
      rows={results}
      empty="None."
      columns={[
        ['#Time', (run) => run.time_formatted],
        ['Player', (run) => <PlayerLink name={run.player_name} />],
        [
          'Board',
          (run) => (
            <BoardLink
              titleId={run.title_id}
              gameName={run.game_name}
              leaderboardId={run.leaderboard_id}
              leaderboardName={run.leaderboard_name}
            />
          )
        ],
        ['Game', (run) => <Name>{run.game_name}</Name>],
        ['#Rank', (run) => run.rank]
      ]}
    />
  )
}
