import { join } from 'node:path'
import { openPglite } from '@gamenet/engines'
import fc from 'fast-check'
import { test } from 'tap'
import { filesThatName, leftBehindCuts, openWorld } from './service/erasure-world.js'

const RUNS = 60

test('an erasure interrupted anywhere, and again while it is completed, is completed later', async (t) => {
  const world = await openWorld(t, (folder) => openPglite({ dir: join(folder, 'writes') }))
  const property = fc.asyncProperty(
    fc.array(fc.integer({ min: 1, max: 130 }), { minLength: 1, maxLength: 3 }),
    async (cuts) => {
      const left = await leftBehindCuts(world, cuts)
      if (left.length > 0) throw new Error(`left: ${left.join(', ')}`)
    }
  )
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
  t.same(await filesThatName(world.folder), [])
  t.comment(`${RUNS} erasures interrupted`)
})
