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
    hasMore: () => true,
    everything: () => async () => parts.shift(),
    isStopping: () => isStopping
  })
  t.teardown(() => {
    isStopping = true
  })
  const due = runner.runDue()
  t.match(await runner.runAll(), { published: 15, outcome: 'succeeded' })
  await due
})

test('a failure that several parts share is reported once', async (t) => {
  const parts = [ran(7, 'board 3: no table'), ran(8, 'board 3: no table'), ran(9, 'board 4: no table')]
  const everything = () => async () => parts.shift()
  const runner = partRunner({
    runDue: async () => undefined,
    hasMore: () => false,
    everything,
    isStopping: () => false
  })
  t.match(await runner.runAll(), { outcome: 'partial', reason: 'board 3: no table; board 4: no table' })
})

test('by schedule, runs are repeated only while one leaves due items', async (t) => {
  const left = [true, true, false, true]
  let runs = 0
  const runner = partRunner({
    runDue: async () => {
      runs += 1
      return ran(runs)
    },
    hasMore: () => left[runs - 1] === true,
    everything: () => async () => undefined,
    isStopping: () => false
  })
  await runner.runDue()
  t.equal(runs, 3)
})
