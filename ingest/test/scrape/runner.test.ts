import { test } from 'tap'
import { partRunner } from '../../src/scrape/runner.js'
import { scrapeRanOf } from '../../src/sources/scrape.js'

const ran = (published: number, reason?: string) => {
  const outcome = reason === undefined ? 'succeeded' : 'partial'
  return scrapeRanOf({ source: 'boards', beganAtMs: 0, durationMs: 1, outcome, published, reason })
}

test('a request for everything waits for one part of the due items', async (t) => {
  const parts = [ran(7), ran(8)]
  let isStopping = false
  const runner = partRunner({
    runDue: async () => {
      await new Promise(setImmediate)
      return ran(1)
    },
    everything: () => async () => parts.shift(),
    isStopping: () => isStopping
  })
  t.teardown(() => {
    isStopping = true
  })
  const due = runner.runDue()
  t.match(await runner.runAll(), { published: 15, outcome: 'succeeded' })
  await due
  t.equal(runner.running(), false)
})

test('what went wrong in several parts alike is reported once', async (t) => {
  const parts = [ran(7, 'board 3: no table'), ran(8, 'board 3: no table'), ran(9, 'board 4: no table')]
  const everything = () => async () => parts.shift()
  const runner = partRunner({ runDue: async () => undefined, everything, isStopping: () => false })
  t.match(await runner.runAll(), { outcome: 'partial', reason: 'board 3: no table; board 4: no table' })
})
