import { instantOf, titleCountTopic } from '@gamenet/schemas'
import { test } from 'tap'
import type { Tables } from '../src/index.js'
import { MemoryLog } from './memory-log.js'
import { message, newestVersion, openTables, projectorOn } from './pipeline.js'

const T0 = Date.UTC(2026, 2, 14, 22)

test('a change is told above one whose answer was lost, wherever the clock goes', async (t) => {
  const engine = await openTables()
  const log = new MemoryLog(() => 5)
  const count = (minute: number) => {
    const event = { titleId: '4d530064', observedAt: instantOf(T0 + minute * 60_000), online: minute }
    log.append(titleCountTopic.name, [message(titleCountTopic, event)], { epoch: 0, partition: 0 })
  }
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  let isLost = false
  let lost = 0
  const projections: Tables = {
    ...engine.projections,
    insert: async (table, columns, body) => {
      await engine.projections.insert(table, columns, body)
      if (table !== 'data_change' || !isLost || lost > 0) return
      lost = await newestVersion(engine.control)
      Date.now = () => now() - 30_000
      throw new Error('the answer was lost')
    }
  }
  const projector = projectorOn({ loader: engine.loader, projections }, log)
  count(0)
  projector.start()
  await projector.caughtUp()
  isLost = true
  count(1)
  await projector.caughtUp()
  t.ok(lost > 0)
  t.ok((await newestVersion(engine.control)) > lost)
  await projector.stop()
})
