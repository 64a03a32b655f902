import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { abortedAfter } from '../src/wiring/time-limit.js'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

test('a time limit comes, whatever the garbage collector takes', async (t) => {
  const limited = abortedAfter(100, new AbortController().signal)
  const came = new Promise((resolve) => limited.addEventListener('abort', () => resolve('came')))
  // What a task holds weakly is held until its end.
  for (let n = 0; n < 3; n += 1) {
    await wait(1)
    collectGarbage()
  }
  const over = new AbortController()
  const late = wait(60_000, 'is lost', { signal: over.signal }).catch(() => undefined)
  t.equal(await Promise.race([came, late]), 'came')
  over.abort()
  t.equal((limited.reason as DOMException).name, 'TimeoutError')
})

test('whoever stops is not made to wait for the time', (t) => {
  const stopping = new AbortController()
  const limited = abortedAfter(3_600_000, stopping.signal)
  stopping.abort(new Error('stopped'))
  t.same(limited.reason, new Error('stopped'))
  t.end()
})
