import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import { type Test, test } from 'tap'
import { callThread, openCalls, type PostedError, restoredError } from '../src/async/thread-calls.js'
import { Failure, isFailure } from '../src/values/failure.js'

type Far = {
  add(a: number, b: number): number
  fail(): Promise<never>
  note(text: string): void
  function(): () => void
  stay(): Promise<void>
}

class Refused extends Error {
  readonly row = 7
  readonly seen = new Map()
}

function connected(t: Test, options: Parameters<typeof openCalls>[2] = {}) {
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  const notes: string[] = []
  openCalls(port2, {
    add: (a: number, b: number) => a + b,
    fail: async () => {
      throw Object.assign(new Refused('no', { cause: new TypeError('deep') }), { name: 'Refused' })
    },
    note: (text: string) => notes.push(text),
    function: () => () => undefined,
    stay: () => new Promise(() => undefined)
  })
  return { calls: openCalls<Far>(port1, {}, options), notes }
}

test('calls run concurrently, and each gets its own result', async (t) => {
  const { calls, notes } = connected(t)
  calls.notify('note', 'first')
  t.same(await Promise.all([calls.call('add', 1, 2), calls.call('add', 3, 4)]), [3, 7])
  t.same(notes, ['first'], 'and keep their order')
})

test('an error crosses with its name, message, fields and cause; errorOf restores its class', async (t) => {
  const { calls } = connected(t)
  const error = await calls.call('fail').catch((thrown: unknown) => thrown)
  t.match(error, { name: 'Refused', message: 'no', row: 7, cause: { name: 'TypeError', message: 'deep' } })
  t.notOk(error instanceof Refused || Object.hasOwn(error as object, 'seen'))
  const errorOf = (posted: PostedError) => (posted.name === 'Refused' ? new Refused('again') : restoredError(posted))
  const typed = await connected(t, { errorOf })
    .calls.call('fail')
    .catch((thrown: unknown) => thrown)
  t.ok(typed instanceof Refused)
})

test('a failure is recognised by its code, also when it has crossed between threads', async (t) => {
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  const thrown = new Failure('log_unreachable', 'Kafka is away')
  openCalls(port2, { fail: () => Promise.reject(thrown) })
  const crossed = await openCalls<Far>(port1, {})
    .call('fail')
    .catch((error: unknown) => error)
  t.notOk(crossed instanceof Failure)
  for (const error of [thrown, crossed]) {
    t.ok(isFailure(error, 'no_space', 'log_unreachable'))
    t.notOk(isFailure(error, 'no_space'))
  }
  t.notOk(isFailure('log_unreachable', 'log_unreachable'), 'a text has no code')
})

test('a value that cannot be copied rejects the call', async (t) => {
  const { calls } = connected(t)
  await t.rejects(calls.call('function'), { name: 'DataCloneError' }, 'a result')
  await t.rejects(calls.call('add', (() => 1) as never, 2), { name: 'DataCloneError' }, 'an argument')
  t.equal(await calls.call('add', 1, 1), 2)
})

test('an end rejects the calls under way and all later ones', async (t) => {
  const busy: boolean[] = []
  const { calls } = connected(t, { onBusy: (isBusy) => busy.push(isBusy) })
  const first = calls.call('stay')
  const second = calls.call('stay')
  calls.end(new Error('over'))
  calls.end(new Error('over again'))
  await t.rejects(first, { message: 'over' })
  await t.rejects(second, { message: 'over' })
  await t.rejects(calls.call('add', 1, 2), { message: 'over' })
  t.same(busy, [true, false])
})

test('calls reject when their thread crashes or exits', async (t) => {
  type Thread = { crash(): void; exit(): void; stay(): void }
  const start = () => {
    const code = `require('node:worker_threads').parentPort.on('message', ({ name }) => {
      if (name === 'crash') throw new RangeError('broken')
      if (name === 'exit') process.exit(3)
    })`
    const worker = new Worker(code, { eval: true })
    return { worker, calls: callThread<Thread>(worker, {}, { exited: 'the thread has ended' }) }
  }
  await t.rejects(start().calls.call('crash'), { name: 'RangeError', message: 'broken' })
  await t.rejects(start().calls.call('exit'), new Failure('thread_exited', 'the thread has ended'))
  const { worker, calls } = start()
  const staying = t.rejects(calls.call('stay'), new Failure('thread_exited', 'the thread has ended'))
  await Promise.all([once(worker, 'exit'), worker.terminate(), staying])
  await t.rejects(calls.call('stay'), new Failure('thread_exited', 'the thread has ended'))
})
