import { ok } from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import fc from 'fast-check'
import { test } from 'tap'
import {
  decodeEvent,
  encodeEvent,
  instantOf,
  type LogRecord,
  type TitleCounted,
  titleCountTopic
} from '../src/index.js'
import { topicChapters } from './topic-pages.js'

const counted = fc.record(
  {
    titleId: fc.stringMatching(/^[0-9a-f]{8}$/),
    observedAt: fc.integer({ min: 0, max: Date.UTC(2106, 0, 1) - 1 }).map(instantOf),
    online: fc.nat(4_294_967_295),
    sessions: fc.nat(),
    lobbyPlayers: fc.nat()
  },
  { requiredKeys: ['titleId', 'observedAt', 'online'] }
)

function recordOf(event: TitleCounted, changed: Partial<LogRecord> = {}): LogRecord {
  return { offset: 0, ...encodeEvent(titleCountTopic, event, { source: '/scrape/network' }), ...changed }
}

test('an event is decoded unchanged from the log, as text and as bytes', async (t) => {
  fc.assert(
    fc.property(counted, fc.boolean(), (event, asBytes) => {
      const message = recordOf(event)
      const value = asBytes ? new TextEncoder().encode(String(message.value)) : message.value
      const decoded = decodeEvent(titleCountTopic, { ...message, value })
      ok(t.same(decoded, { ok: true, event, source: '/scrape/network', importId: '' }))
    }),
    { seed: 1 }
  )
})

test('equal observations have one id, and observations of another instant another one', async (t) => {
  const event = { titleId: '4d530064', observedAt: '2026-03-14T20:00:00Z', online: 41 }
  const id = recordOf(event).headers.ce_id
  t.equal(id, 'title-count/4d530064@2026-03-14T20:00:00Z')
  t.equal(recordOf({ ...event, online: 42 }).headers.ce_id, id)
  t.not(recordOf({ ...event, observedAt: '2026-03-14T20:01:00Z' }).headers.ce_id, id)
})

const event = { titleId: '4d530064', observedAt: '2026-03-14T20:00:00Z', online: 41 }
const good = recordOf(event)
const unreadable: [string, LogRecord, RegExp][] = [
  ['a message without value', { ...good, value: null }, /no value/],
  ['a message that the log calls none', { ...good, fault: 'the header x has no value' }, /^the header x has no value$/],
  ['text that is not JSON', { ...good, value: '{' }, /not JSON/],
  ['bytes that are not UTF-8', { ...good, value: new Uint8Array([0xff, 0xfe]) }, /not JSON/],
  ['a message without ce_type', { ...good, headers: {} }, /ce_type is missing/],
  ['another topic', { ...good, headers: { ce_type: 'gamenet.title.v1' } }, /expected gamenet\.title-count\.v1/],
  ['a newer schema version', { ...good, headers: { ce_type: 'gamenet.title-count.v2' } }, /newer than this program/],
  ['a count as text', { ...good, value: JSON.stringify({ ...event, online: '5' }) }, /^online: /],
  ['a count beyond 32 bits', { ...good, value: JSON.stringify({ ...event, online: 4294967296 }) }, /^online: /],
  ['no instant', { ...good, value: JSON.stringify({ ...event, observedAt: undefined }) }, /^observedAt: /],
  [
    'an instant that is not a day',
    { ...good, value: JSON.stringify({ ...event, observedAt: '2026-02-30T00:00:00Z' }) },
    /^observedAt: /
  ]
]
for (const [what, record, reason] of unreadable) {
  test(`${what} is refused with a reason`, async (t) => {
    const decoded = decodeEvent(titleCountTopic, record)
    t.equal(decoded.ok, false)
    if (!decoded.ok) t.match(decoded.reason, reason)
  })
}

test('the schema of a topic reads messages of older versions', async (t) => {
  const second = { ...titleCountTopic, version: 2 }
  t.match(decodeEvent(second, good), { ok: true, event })
  t.match(decodeEvent(second, { ...good, headers: { ce_type: 'gamenet.title-count.v2' } }), { ok: true, event })
})

test('docs/topics.md has the schema of each topic', async (t) => {
  const page = new URL('../../../docs/topics.md', import.meta.url)
  const mark = '<!-- derived from the schemas -->\n\n'
  const [written = '', chapters] = (await readFile(page, 'utf8')).split(mark)
  if (process.env.REFRESH_TOPICS === '1') await writeFile(page, written + mark + topicChapters())
  else t.equal(chapters, topicChapters(), 'REFRESH_TOPICS=1 npm test -- cloud-event writes it again')
})
