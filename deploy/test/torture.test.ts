import { test } from 'tap'
import { provesNothingLost } from './service/nothing-lost.js'

/** The kills of this seed are those below. */
const SEED = 65_931

test('a service of one process that is killed loses no row and shows no wrong one', async (t) => {
  const { struckBy } = await provesNothingLost(t, { engines: 'embedded', kills: 3, seed: SEED, calm: 8 })
  t.match(struckBy, { 'kill service acknowledged': 1, 'kill service insert': 1, 'kill service start': 1 })
})
