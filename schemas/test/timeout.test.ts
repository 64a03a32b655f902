import { setTimeout as pause, setImmediate as tick } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { abortedAfter, withTimeout } from '../src/async/timeout.js'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')
const never = new Promise<never>(() => undefined)
const refuse = () => {
  throw new Error('late')
}

test('the outcome is that of work that ends in time, and no timer remains', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  t.equal(await withTimeout(Promise.resolve(1), 3_600_000, refuse), 1)
  await t.rejects(withTimeout(Promise.reject(new Error('failed')), 3_600_000, refuse), { message: 'failed' })
  t.equal(timers(), before)
})

test('after the timeout the outcome is the value or the error of onTimeout', async (t) => {
  t.equal(await withTimeout(never, 1, () => 'late'), 'late')
  await t.rejects(withTimeout(never, 1, refuse), { message: 'late' })
})

test('a failure of work after the timeout is not an unhandled rejection', async (t) => {
  let fail = (_error: Error): void => undefined
  const work = new Promise<never>((_, reject) => {
    fail = reject
  })
  t.equal(await withTimeout(work, 1, () => 'late'), 'late')
  fail(new Error('failed'))
  await tick()
})

test('a signal aborts after its time, also when garbage is collected', async (t) => {
  const limited = abortedAfter(100, new AbortController().signal)
  const aborted = new Promise((resolve) => limited.addEventListener('abort', () => resolve('aborted')))
  // A weakly held object lives until the end of its task.
  for (let n = 0; n < 3; n += 1) {
    await pause(1)
    collectGarbage()
  }
  t.equal(await withTimeout(aborted, 60_000, () => 'lost'), 'aborted')
  t.equal((limited.reason as DOMException).name, 'TimeoutError')
})

test('a signal with a time limit aborts at once when another signal does', (t) => {
  const stopping = new AbortController()
  const limited = abortedAfter(3_600_000, stopping.signal)
  stopping.abort(new Error('stopped'))
  t.same(limited.reason, new Error('stopped'))
  t.end()
})
