import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPglite } from '@gamenet/engines'
import fc from 'fast-check'
import { test } from 'tap'
import { filesThatName, leftBehindCuts, openWorld } from './service/erasure-world.js'

const RUNS = 60
const CUTS = fc.array(fc.integer({ min: 1, max: 130 }), { minLength: 1, maxLength: 3 })

test('an erasure interrupted anywhere, and again while it is completed, is completed later', async (t) => {
  // How many of the runs are done: an interrupted campaign continues with the next one.
  const file = join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir({}), 'erasures')
  const done = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0
  const world = await openWorld(t, (folder) => openPglite({ dir: join(folder, 'writes') }))
  for (let run = done % RUNS; run < RUNS; run += 1) {
    const [cuts = []] = fc.sample(CUTS, { seed: run, numRuns: 1 })
    if (!t.same(await leftBehindCuts(world, cuts), [], `cut off at ${cuts.join(', then ')}`)) return
    writeFileSync(file, String(run + 1))
  }
  t.same(await filesThatName(world.folder), [])
  t.comment(`${RUNS} erasures interrupted`)
})
