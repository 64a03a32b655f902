import { getEventListeners } from 'node:events'
import { setImmediate as tick } from 'node:timers/promises'
import { test } from 'tap'
import { withSignals } from '../src/async/with-signals.js'

const listenersOf = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length
const refused = () => Promise.reject(new Error('failed'))

test('work that has ended, well or not, leaves nothing at its sources; concurrent calls cause no warning', async (t) => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => void warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const [long, other] = [new AbortController().signal, new AbortController().signal]
  const running = Array.from({ length: 50 }, (_, n) => withSignals([long, undefined, other], () => tick(n)))
  t.equal(listenersOf(long), 50)
  t.same(await Promise.all(running), [...Array(50).keys()])
  await t.rejects(withSignals([long], refused), { message: 'failed' })
  t.same([listenersOf(long), listenersOf(other), warnings], [0, 0, []])
})

test('the signal of the work aborts when a source does, for its reason', async (t) => {
  const [first, second] = [new AbortController(), new AbortController()]
  await withSignals([first.signal, second.signal], async ({ signal }) => {
    t.notOk(signal.aborted)
    second.abort(new Error('stopped'))
    t.same(signal.reason, new Error('stopped'))
    first.abort(new Error('late'))
    t.same(signal.reason, new Error('stopped'))
  })
})

test('the signal of the work is aborted from the start if a source is', async (t) => {
  const sources = [new AbortController().signal, AbortSignal.abort('before')]
  t.equal(await withSignals(sources, async ({ signal }) => signal.reason), 'before')
})

test('work without sources may abort its own controller', async (t) => {
  await withSignals([undefined], async (controller) => {
    controller.abort()
    t.ok(controller.signal.aborted)
  })
})
