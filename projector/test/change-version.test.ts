import { INSTANTS_END_MS, instantOf, titleCountTopic } from '@gamenet/schemas'
import { test } from 'tap'
import { readSide, storeOver, type Tables } from '../src/index.js'
import { storeCheckpoints } from '../src/store/checkpoint.js'
import { storeChanges } from '../src/store/data-change.js'
import { storePointers } from '../src/store/generation.js'
import { MemoryLog } from './memory-log.js'
import { message, newestVersion, openTables, projectorOn } from './pipeline.js'

const T0 = Date.UTC(2026, 2, 14, 22)

test('a change gets a higher version than one whose acknowledgement was lost, even if the clock goes back', async (t) => {
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

test('changes are read as spans of whole hours, and recent ones of whole minutes', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const { changes } = readSide(store)
  t.equal(await changes.newestBegin(), 0)
  const hour = 3_600_000
  const change = (fromMs: number, toMs: number, key = '*') => ({ projection: 'a', key, fromMs, toMs })
  await store.do(storeChanges, 7, [
    change(T0 + 1, T0 + 2),
    change(T0 + 5, T0 + 60_000),
    change(-5, INSTANTS_END_MS + 1)
  ])
  await store.do(storeChanges, 8, [change(T0 + 3, T0 + 4), change(T0 + 3, T0 + 3, 'x')])
  const since = async (version: number, minutesFromMs: number) => {
    const found = await changes.since(version, minutesFromMs)
    return found.map(({ key, fromMs, toMs, version }) => [key, fromMs, toMs, version]).sort()
  }
  const whole = ['*', 0, INSTANTS_END_MS, 7]
  t.same(await since(0, T0 + hour), [whole, ['*', T0, T0 + hour, 8], ['x', T0, T0 + hour, 8]].sort())
  t.same(
    await since(7, 0),
    [
      ['*', T0, T0 + 60_000, 8],
      ['x', T0, T0 + 60_000, 8]
    ].sort()
  )
  t.equal(await changes.newestBegin(), T0 + 5)
  await store.do(storeChanges, 2 ** 53, [change(T0, T0 + 1)])
  await t.rejects(changes.since(0, 0), /expected an integer below 2\^53/)
})

test('positions are those of the generations that are read', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const { positions, serving } = readSide(store)
  const at = (name: string, next: number) => ({ name, epoch: 1, partition: 0, next })
  const names = ['project:player', 'load:presence']
  await store.do(storeCheckpoints, [
    at('project:player', 9),
    at('project:player__7', 5),
    at('load:presence', 4),
    at('b', 1)
  ])
  const read = async () => (await positions(await serving(), names)).map(({ name, next }) => [name, next]).sort()
  t.same(await read(), [
    ['load:presence', 4],
    ['project:player', 9]
  ])
  const pointer = { owner: 'project:player', tables: ['player'], writes: 7, reads: 7, readsChanged: 3 }
  await store.do(storePointers, 1, [pointer])
  t.same(await read(), [
    ['load:presence', 4],
    ['project:player', 5]
  ])
  const now = await serving()
  t.same([now.nameOf('player'), now.counterOf('player'), now.counter], ['player__7', 3, 1])
})
