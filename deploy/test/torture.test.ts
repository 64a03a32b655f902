import { test } from 'tap'
import { provesNothingLost } from './service/nothing-lost.js'

/** Of this seed the kills are those below, in this order, and the first rebuild loads its topic from the log. */
const SEED = 341029

test('a service of one process that is killed loses nothing, shows nothing wrong, and rebuilds while it is written and read', async (t) => {
  const { struckBy } = await provesNothingLost(t, {
    engines: 'embedded',
    kills: 4,
    seed: SEED,
    // One by SQL, one by a fold.
    rebuilt: ['title-count', 'leaderboard-entry'],
    calm: 8
  })
  t.match(struckBy, { 'kill service acknowledged': 1, 'kill service insert': 1, 'kill service start': 1 })
  t.match(Object.keys(struckBy).join(), /(kill|stop) service shutdown/)
})
