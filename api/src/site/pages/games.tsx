import type { TopGames } from '@gamenet/schemas'
import { z } from 'zod'
import { integer, oneOf, text } from '../../request/parameters.js'
import { topGames } from '../../routes/title-count.js'
import { Field, Form } from '../components/form.js'
import { GAME_COLUMNS, type GameRow, gameRows, gamesParts, trendColumn } from '../components/games.js'
import { AddToCompare, Csv } from '../components/marks.js'
import { Pager, pageOf, Table } from '../components/table.js'
import { count, DAY_MS, HOUR_MS, plural, withQuery } from '../components/text.js'
import { iso } from '../values/iso.js'
import { page, tryAsk } from '../values/page.js'

const ROWS = 100
const TREND_DAYS = 30
const SORTS = ['online', 'name', 'change', 'peak24h', 'peak', 'average', 'lobbies', 'publisher'] as const
const TEXTS: ReadonlySet<string> = new Set(['name', 'publisher'])

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
      ...gamesParts(nowMs, TREND_DAYS),
      month: tryAsk<TopGames>(topGames, { from: iso(hourMs - TREND_DAYS * DAY_MS), to: iso(hourMs) })
    }
  },
  view: (answers, input, { query }) => {
    const all = gameRows(answers)
    const found = foundIn(all, input)
    const number = pageOf(input.page, found.length, ROWS)
    const { page: _page, dir: _dir, ...kept } = query
    const { q: _q, playing: _playing, ...order } = query
    const isAscending = isAscendingBy(input)
    return {
      title: plural(all.length, 'game'),
      description: `Players, peaks and means of ${plural(all.length, 'game')}, now and over 30 days.`,
      canonical: '/games',
      section: '/games',
      content: (
        <>
          <h1>Games</h1>
          <Form action="/games" submit="Filter" hidden={{ ...order, page: undefined }}>
            <Field name="q" value={input.q} label="Filter by name or publisher" />
            <label>
              <input type="checkbox" name="playing" value="1" checked={input.playing === 1} /> playing now
            </label>
            <span class="quiet">
              {count(found.length)} of {count(all.length)}
            </span>
            <Csv href="/api/online-users?format=csv" />
          </Form>
          <section class="card" data-filtered={number.pages === 1 ? 'q' : undefined}>
            {found.length === 0 ? <p>No game matches.</p> : null}
            <Table
              label="Games"
              rows={found.slice((number.page - 1) * ROWS, number.page * ROWS)}
              columns={[
                ...Object.values(GAME_COLUMNS),
                trendColumn(TREND_DAYS),
                ['Compare', ({ titleId, name }) => <AddToCompare kind="games" id={titleId} name={name} />]
              ]}
              order={{
                by: input.sort,
                isAscending,
                hrefOf: (sort) =>
                  withQuery('/games', {
                    ...kept,
                    sort,
                    dir: sort !== input.sort ? undefined : isAscending ? 'desc' : 'asc'
                  })
              }}
            />
            <Pager {...number} path="/games" query={query} />
          </section>
        </>
      )
    }
  }
})

function foundIn(all: readonly GameRow[], input: GamesInput): GameRow[] {
  const words = (input.q ?? '').toLowerCase().trim()
  const sign = isAscendingBy(input) ? 1 : -1
  return all
    .filter(({ online }) => input.playing === 0 || online > 0)
    .filter(({ name, titleId, publisher }) => `${name} ${publisher}`.toLowerCase().includes(words) || titleId === words)
    .sort((a, b) => {
      const [left, right] = [a[input.sort], b[input.sort]]
      // What is unknown stands last in both directions.
      if (left === null || right === null) return (left === null ? 1 : 0) - (right === null ? 1 : 0)
      const order = typeof left === 'string' ? left.localeCompare(String(right), 'en') : left - Number(right)
      return sign * order || b.online - a.online || a.name.localeCompare(b.name, 'en')
    })
}

/** Numbers begin with the highest, names with the first. */
function isAscendingBy({ sort, dir }: GamesInput): boolean {
  return (dir ?? (TEXTS.has(sort) ? 'asc' : 'desc')) === 'asc'
}
