import { Refusal } from '@gamenet/schemas'
import { test } from 'tap'
import type { ResolveContext } from '../src/answers/endpoint.js'
import { parseInput } from '../src/request/parameters.js'
import { endpoints } from '../src/routes/endpoints.js'
import { pages } from '../src/site/routes.js'
import { Redirect } from '../src/site/values/page.js'
import { catalogNaming } from './stored-tables.js'
import { NOW_MS } from './support/test-app.js'

/** Inputs under which the pages ask for everything that they can show. */
const GIVEN = {
  ...{ game: '4d530064', slug: 'halo-2', board: '1', player: 'ann', asOf: '2026-03-01' },
  ...{
    name: 'ann',
    username: 'ann',
    key: 'halo-hour',
    q: '1:02.345',
    names: 'ann,bob',
    games: '4d530064',
    lobbies: '1'
  }
}
/** Each page by its usual span, by one of samples, and compared. */
const VARIANTS = [{}, { range: '1y' }, { with: 'week' }, { overlay: 'week' }]
/** Operations whose content is on no page of their own: another operation has the same facts. */
const ON_NO_PAGE = [
  // Deprecated, or other paths of an answer that is on a page.
  ...['getActivitySummary', 'getDailyOnline', 'getLastMatches', 'getLobbies', 'getLobbyStats'],
  // Names for programs; the pages have them from others.
  ...['getGames', 'getLeaderboardSummary', 'searchPlayer', 'searchRoster', 'suggestPlayers']
]

test('the content of every operation is on a page, except those in this list', async (t) => {
  const titles = catalogNaming({ '4d530064': 'Halo 2' })
  const context: ResolveContext = { nowMs: NOW_MS, openListAgeMs: 600_000, catalog: async () => titles }
  const shown = new Set<string>()
  for (const page of pages) {
    for (const variant of VARIANTS) {
      const names = Object.keys(page.input.shape)
      const given = Object.entries({ ...GIVEN, ...variant }).filter(([name]) => names.includes(name))
      try {
        const parts = await page.parts(parseInput(page.input, Object.fromEntries(given)), { ...context, query: {} })
        for (const part of Object.values(parts)) if (part !== undefined) shown.add(part.endpoint.operationId)
      } catch (error) {
        // The variant is none of this page, or its address leads to another one.
        if (!(error instanceof Refusal || error instanceof Redirect)) throw error
      }
    }
  }
  const reads = endpoints.filter(({ method }) => method === undefined || method === 'POST')
  t.same(
    reads
      .map(({ operationId }) => operationId)
      .filter((id) => !shown.has(id))
      .sort(),
    [...ON_NO_PAGE].sort()
  )
})
