import { achievements } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { busy, compareUnlocks, openWorld, step } from './service/achievement-world.js'

const RUNS = 40

test('in random worlds, with deaths and repeated work, unlocks equal a plain model, each once', async (t) => {
  const world = await openWorld(t)
  const { live, expected } = compareUnlocks(t, world)
  const property = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 5, size: 'max' }), live)
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true, examples: [[[busy]]] })
  const ids = new Set([...expected.keys()].map((key) => Number(key.split('/')[1])))
  const missed = achievements.filter(({ id }) => !ids.has(id)).map(({ key }) => key)
  t.comment(`${RUNS} worlds, ${expected.size} unlocks; without an unlock: ${missed.join(', ')}`)
})
