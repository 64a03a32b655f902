import { setImmediate as tick } from 'node:timers/promises'
import { test } from 'tap'
import { SharedRun } from '../src/async/shared-run.js'

test('calls during a run share the next one, also after a failure', async (t) => {
  let runs = 0
  const shared = new SharedRun(async () => {
    runs += 1
    const run = runs
    await tick()
    if (run === 1) throw new Error('first')
    return run
  })
  const first = t.rejects(shared.run(), { message: 'first' })
  const results = Promise.all([shared.run(), shared.run()])
  await shared.idle()
  await first
  t.same(await results, [2, 2])
  t.equal(await shared.run(), 3, 'a call after a run begins a new one')
})
