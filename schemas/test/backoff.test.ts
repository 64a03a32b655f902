import { setImmediate as tick } from 'node:timers/promises'
import { test } from 'tap'
import { backoffMs, pause } from '../src/async/backoff.js'

test('the delay doubles with every failure, up to its maximum', (t) => {
  const backoff = { firstMs: 250, maxMs: 30_000 }
  t.same(
    [1, 2, 3, 7, 8, 1_000_000].map((failures) => backoffMs(backoff, failures)),
    [250, 500, 1000, 16_000, 30_000, 30_000]
  )
  t.end()
})

test('many pauses end when their signal aborts, without a warning of a listener leak', async (t) => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => warnings.push(name)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const stopping = new AbortController()
  const pauses = Array.from({ length: 20 }, () => pause(3_600_000, stopping.signal))
  await tick()
  stopping.abort()
  await Promise.all(pauses)
  await pause(3_600_000, stopping.signal)
  t.same(warnings, [])
})
