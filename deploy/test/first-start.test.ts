import { test } from 'tap'
import { endOfSupport, upstreamNotice } from '../src/run/start-notices.js'

const at = (instant: string) => Date.parse(instant)
const run = { source: 'network', observedAt: '2026-01-01T00:00:00.000Z', durationMs: 1, published: 0 } as const

test('a Node line out of support is named from the day after its last day', (t) => {
  t.equal(endOfSupport('20.20.1', at('2026-04-30T23:59:59Z')), undefined)
  t.match(endOfSupport('20.20.1', at('2026-05-01T00:00:00Z')), /^Node 20\.20\.1 .* since 2026-04-30\..*Node 24/)
  t.match(endOfSupport('23.1.0', at('2026-05-01T00:00:00Z')), /^Node 23/)
  t.equal(endOfSupport('24.1.0', at('2026-05-01T00:00:00Z')), undefined)
  t.equal(endOfSupport('26.0.0', at('2036-05-01T00:00:00Z')), undefined, 'a later line is not judged')
  t.end()
})

test('a network whose page cannot be read is named once, with what to do, and again when it answers', (t) => {
  const said: string[] = []
  let lastRun: Parameters<typeof upstreamNotice>[0]['network'] extends () => infer State ? State : never
  lastRun = { lastRun: null }
  let sinceStartMs = 1000
  const look = upstreamNotice({
    url: 'http://network.test',
    network: () => lastRun,
    sinceStartMs: () => sinceStartMs,
    say: (sentence) => said.push(sentence)
  })
  look()
  t.same(said, [], 'the first run may take a while')
  sinceStartMs = 31_000
  for (let looks = 0; looks < 3; looks += 1) look()
  t.match(said, [/http:\/\/network\.test does not answer.*UPSTREAM_URL/])
  lastRun = { lastRun: { ...run, outcome: 'failed', reason: 'connect ECONNREFUSED' } }
  look()
  t.equal(said.length, 1, 'still the same trouble')
  lastRun = { lastRun: { ...run, outcome: 'succeeded' } }
  look()
  look()
  t.match(said, [/./, /http:\/\/network\.test can be read again/])
  lastRun = { lastRun: { ...run, outcome: 'failed', reason: 'connect ECONNREFUSED' } }
  look()
  t.match(said.at(-1), /connect ECONNREFUSED/)
  t.equal(said.length, 3)
  t.end()
})
