import { test } from 'tap'
import { provesNothingLost } from './service/nothing-lost.js'

/** The kills of this seed are those below. */
const SEED = 39_682

test('a service on embedded engines that is killed, or whose ClickHouse is, loses no row and shows no wrong one', async (t) => {
  const { struckBy } = await provesNothingLost(t, { engines: 'embedded', kills: 4, seed: SEED, calm: 8 })
  const service = { 'kill service acknowledged': 1, 'kill service insert': 1, 'kill service start': 1 }
  t.match(struckBy, { 'kill ClickHouse any': 1, ...service })
})
