import { randomInt } from 'node:crypto'
import { test } from 'tap'
import { lookDeeper } from './runs.js'

/*
 * Every property of the parsers of pages and of imports, twenty times as often as `npm test` tries it, with other cases
 * each time.
 */

const seed = randomInt(2 ** 31)
lookDeeper(seed, 20)
test('the seed of this campaign', async (t) => t.comment(`seed ${seed}`))
await import('./pages/home-page-fuzz.test.js')
await import('./pages/game-page-fuzz.test.js')
await import('./pages/games-page-fuzz.test.js')
await import('./pages/players-page.test.js')
await import('./import-rows.test.js')
await import('./import-matches.test.js')
await import('./import-time.test.js')
await import('./boards/diff-board.test.js')
await import('./boards/order-keys.test.js')
