import { mock } from 'node:test'
import { test } from 'tap'
import { gamenetClient } from '../src/index.js'

test('a stream ends at once when its signal aborts, and rejects when the answer is not a stream', async (t) => {
  const answered = (body: string, type: string) =>
    gamenetClient({
      baseUrl: 'http://localhost',
      fetch: async () => new Response(body, { headers: { 'content-type': type } })
    })
  const lines = [1, 2, 3].map((cursor) => `{"cursor":"${cursor}","kind":"count"}\n`)
  const abort = new AbortController()
  const events = answered(lines.join(''), 'application/x-ndjson').stream({}, { signal: abort.signal })
  t.match(await events.next(), { value: { cursor: '1' } })
  abort.abort(new Error('enough'))
  await t.rejects(events.next(), { message: 'enough' })
  const page = answered('<!doctype html>', 'text/html')
  await t.rejects(page.stream().next(), { status: 200, message: /answered no events; check that baseUrl/ })
})

test('a stream reconnects after the delay that the service has sent, and after growing ones while the service is away', async (t) => {
  const { timers } = mock
  timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => timers.reset())
  const answers = ['{"cursor":"1","kind":"count"}\n', '', '<p>No such host</p>', '{"cursor":"2","kind":"count"}\n']
  const asked: string[] = []
  const client = gamenetClient({
    baseUrl: 'http://localhost',
    fetch: async (url) => {
      asked.push(String(url))
      const body = answers.shift()
      if (body === '') throw new TypeError('fetch failed')
      // A proxy's answer while it has no service.
      if (body?.startsWith('<')) return new Response(body, { status: 404, headers: { 'content-type': 'text/html' } })
      return new Response(body, { headers: { 'content-type': 'application/x-ndjson', 'retry-after': '5' } })
    }
  })
  const events = client.stream({ after: '0' })
  t.match(await events.next(), { value: { cursor: '1' } })
  const next = events.next()
  const pass = async (ms: number) => {
    timers.tick(ms)
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
  }
  await pass(0)
  for (const [n, ms] of [5000, 10_000, 20_000].entries()) {
    await pass(0.9 * ms - 1)
    t.equal(asked.length, n + 1, `not before ${0.9 * ms} ms`)
    await pass(0.2 * ms + 1)
    t.equal(asked.length, n + 2, `after ${1.1 * ms} ms at most`)
  }
  t.match(await next, { value: { cursor: '2' } })
  t.match(asked.at(-1), /after=1$/)
})

test('a stream reconnects after a line that is not an event, and soon after a Retry-After of an hour', async (t) => {
  const { timers } = mock
  timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => timers.reset())
  const event = '{"cursor":"1","kind":"count"}\n'
  const bodies = ['null\n', '{}\n', '5\n', '{"kind":"count"}\n', 'x\n'].map((line) => event + line)
  for (const body of bodies) {
    const asked: string[] = []
    const client = gamenetClient({
      baseUrl: 'http://localhost',
      fetch: async (url) => {
        asked.push(String(url))
        if (asked.length === 2) return new Response('', { status: 503, headers: { 'retry-after': '3600' } })
        const text = asked.length === 1 ? body : event
        return new Response(text, { headers: { 'content-type': 'application/x-ndjson' } })
      }
    })
    const events = client.stream({ after: '0' })
    t.match(await events.next(), { value: { cursor: '1' } })
    const next = events.next()
    for (const ms of [0, 3000, 60_000]) {
      timers.tick(ms)
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
    }
    t.match(await next, { value: { cursor: '1' } }, body)
    t.match(asked.at(-1), /after=1$/)
    await events.return()
  }
})
