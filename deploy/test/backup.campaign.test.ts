import fc from 'fast-check'
import { test } from 'tap'
import { provesBackups } from './service/backups.js'

test('a backup that is killed anywhere contains all acknowledged data, and every table can be restored from it', async (t) => {
  const seed = Date.now() % 2 ** 31
  t.comment(`seed ${seed}`)
  const [first = 0, second = 0, third = 0, fourth = 0] = fc.sample(fc.double({ min: 0, max: 0.9, noNaN: true }), {
    numRuns: 4,
    seed
  })
  await provesBackups(t, {
    rebuilds: true,
    restoreKills: [0, first, second],
    backupKills: [third, fourth],
    seed,
    startsAgain: true
  })
})
