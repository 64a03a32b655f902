import { type LogMessage, titleCountTopic } from '@gamenet/schemas'
import { test } from 'tap'
import { publish } from '../src/index.js'

test('events are appended in their order, in chunks of limited size', async (t) => {
  const appends: LogMessage[][] = []
  const log = { append: async (_: string, messages: readonly LogMessage[]) => void appends.push([...messages]) }
  const events = Array.from({ length: 25_000 }, (_, online) => ({
    titleId: '4d530064',
    observedAt: '2026-03-14T20:00:00Z',
    online
  }))
  await publish(log, titleCountTopic, events, { source: '/import/1', importId: '1' })
  t.same(
    appends.map(({ length }) => length),
    [10_000, 10_000, 5_000]
  )
  t.same(
    appends.flat().map(({ value }) => JSON.parse(value).online),
    events.map(({ online }) => online)
  )
  t.match(appends[0]?.[0], { key: '4d530064', headers: { ce_source: '/import/1', ce_importid: '1' } })
})

test('nothing is appended after a chunk that the log refused', async (t) => {
  let appends = 0
  const log = {
    append: async () => {
      appends += 1
      throw new Error('no space left on device')
    }
  }
  const event = { titleId: '4d530064', observedAt: '2026-03-14T20:00:00Z', online: 1 }
  await t.rejects(publish(log, titleCountTopic, Array(20_001).fill(event), { source: '/test' }), /no space left/)
  t.equal(appends, 1)
})
