import type { OnlineUsers, Peaks, Sparklines, TopGames } from '@gamenet/schemas'
import { z } from 'zod'
import { integer, oneOf, text } from '../../request/parameters.js'
import { peaks } from '../../routes/calendar.js'
import { sparklines } from '../../routes/sparkline.js'
import { onlineUsers, topGames } from '../../routes/title-count.js'
import { Trend } from '../components/chart.js'
import { type GameRow, gameRows } from '../components/games.js'
import { iso } from '../components/history.js'
import { AddToCompare, GameLink, N, Pager, Scroll } from '../components/marks.js'
import { pageOf } from '../components/page-number.js'
import { count, DAY_MS, HOUR_MS, plural, withQuery } from '../components/text.js'
import { ask, page, tryAsk } from '../values/page.js'
import { Share } from './home.js'

const ROWS = 100
const SORTS = ['online', 'name', 'change', 'peak24h', 'peak', 'average', 'lobbies', 'publisher'] as const
const COLUMNS: Readonly<Record<(typeof SORTS)[number], string>> = {
  name: 'Game',
  online: 'Playing',
  change: '24 h',
  peak24h: '24 h peak',
  average: '30 d mean',
  peak: 'All-time peak',
  lobbies: 'Lobbies',
  publisher: 'Publisher'
}

const gamesInput = z.object({
  sort: oneOf(SORTS).default('online'),
  dir: oneOf(['asc', 'desc']).optional(),
  q: text({ example: 'halo', max: 500 }).optional(),
  page: integer({ min: 1, max: 100_000 }).default(1),
  playing: integer({ min: 0, max: 1 }).default(0)
})
type GamesInput = z.infer<typeof gamesInput>

/** `/games`: all games as a table. */
export const gamesPage = page({
  name: 'page-games',
  path: '/games',
  input: gamesInput,
  parts: (_input: GamesInput, { nowMs }) => {
    const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS
    return {
      online: ask<OnlineUsers>(onlineUsers),
      peaks: tryAsk<Peaks>(peaks),
      today: tryAsk<TopGames>(topGames, { from: iso(hourMs - DAY_MS), to: iso(hourMs) }),
      yesterday: tryAsk<TopGames>(topGames, { from: iso(hourMs - 2 * DAY_MS), to: iso(hourMs - DAY_MS) }),
      month: tryAsk<TopGames>(topGames, { from: iso(hourMs - 30 * DAY_MS), to: iso(hourMs) }),
      trends: tryAsk<Sparklines>(sparklines, { days: 30 })
    }
  },
  view: (answers, input) => {
    const all = gameRows(answers)
    const words = (input.q ?? '').toLowerCase().trim()
    const found = all
      .filter(({ online }) => input.playing === 0 || online > 0)
      .filter(
        ({ name, titleId, publisher }) => `${name} ${publisher}`.toLowerCase().includes(words) || titleId === words
      )
      .sort(orderOf(input))
    const number = pageOf(input.page, found.length, ROWS)
    const rows = found.slice((number.page - 1) * ROWS, number.page * ROWS)
    const query = queryOf(input)
    return {
      title: `${plural(all.length, 'game')}`,
      description: `Players, peaks and means of ${plural(all.length, 'game')}, now and over 30 days.`,
      canonical: '/games',
      isUnlisted: Object.values(query).some((value) => value !== undefined),
      section: '/games',
      content: (
        <>
          <h1>Games</h1>
          <form action="/games" class="row">
            <input
              type="search"
              name="q"
              value={input.q}
              placeholder="Filter by name or publisher"
              aria-label="Filter games"
              maxlength={100}
              data-filter="games"
            />
            <label>
              <input type="checkbox" name="playing" value="1" checked={input.playing === 1} /> playing now
            </label>
            {input.sort === SORTS[0] ? null : <input type="hidden" name="sort" value={input.sort} />}
            {input.dir === undefined ? null : <input type="hidden" name="dir" value={input.dir} />}
            <button type="submit">Filter</button>
            <span class="quiet">
              {count(found.length)} of {count(all.length)}
            </span>
            <a href="/api/online-users?format=csv" rel="nofollow">
              CSV
            </a>
          </form>
          <section class="card">
            <GamesTable rows={rows} input={input} />
            <Pager {...number} hrefOf={(to) => withQuery('/games', { ...query, page: to === 1 ? undefined : to })} />
          </section>
        </>
      )
    }
  }
})

function queryOf({ sort, dir, q, page: number, playing }: GamesInput) {
  return {
    sort: sort === SORTS[0] ? undefined : sort,
    dir,
    q,
    page: number === 1 ? undefined : number,
    playing: playing === 0 ? undefined : playing
  }
}

/** Numbers begin with the highest, names with the first. */
function isAscending({ sort, dir }: Pick<GamesInput, 'sort' | 'dir'>): boolean {
  return (dir ?? (sort === 'name' || sort === 'publisher' ? 'asc' : 'desc')) === 'asc'
}

function orderOf(input: GamesInput) {
  const sign = isAscending(input) ? 1 : -1
  return (a: GameRow, b: GameRow): number => {
    const [left, right] = [a[input.sort], b[input.sort]]
    // What is unknown stands last in both directions.
    if (left === null || right === null) return (left === null ? 1 : 0) - (right === null ? 1 : 0)
    const order = typeof left === 'string' ? left.localeCompare(String(right), 'en') : left - Number(right)
    return sign * order || b.online - a.online || a.name.localeCompare(b.name, 'en')
  }
}

function GamesTable({ rows, input }: { rows: readonly GameRow[]; input: GamesInput }) {
  if (rows.length === 0) return <p>No game matches.</p>
  const columns = Object.entries(COLUMNS) as [keyof typeof COLUMNS, string][]
  return (
    <Scroll label="Games">
      <table>
        <thead>
          <tr>
            {columns.map(([sort, label]) => {
              const isCurrent = sort === input.sort
              const direction = isAscending(input) ? 'asc' : 'desc'
              const opposite = direction === 'asc' ? 'desc' : 'asc'
              const query = { ...queryOf(input), page: undefined, sort, dir: isCurrent ? opposite : undefined }
              return (
                <th
                  key={sort}
                  scope="col"
                  class={sort === 'name' || sort === 'publisher' ? undefined : 'number'}
                  {...(isCurrent
                    ? { 'aria-sort': direction === 'asc' ? ('ascending' as const) : ('descending' as const) }
                    : {})}
                >
                  <a href={withQuery('/games', query)} rel="nofollow">
                    {label}
                    {isCurrent ? (direction === 'asc' ? ' ▲' : ' ▼') : ''}
                  </a>
                </th>
              )
            })}
            <th scope="col">30 days</th>
            <th scope="col">
              <span class="unseen">Compare</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={row.titleId} row={row} />
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function Row({ row }: { row: GameRow }) {
  const { titleId, name, image, online, change, peak24h, average, peak, lobbies, publisher } = row
  return (
    <tr>
      <th scope="row">
        <GameLink titleId={titleId} name={name} image={image} />
      </th>
      <td class="number">
        <N of={online} live={`title/${titleId}`} />
      </td>
      <td class="number">
        <Share of={change} />
      </td>
      {[peak24h, average, peak, lobbies].map((value, index) => (
        <td key={index} class="number">
          {value === null ? '' : <N of={value} />}
        </td>
      ))}
      <td>{publisher}</td>
      <td>
        <Trend values={row.trend} label={`Daily peaks of ${name}`} />
      </td>
      <td>
        <AddToCompare kind="games" id={titleId} name={name} />
      </td>
    </tr>
  )
}
