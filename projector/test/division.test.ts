import { until } from '@gamenet/engines/testing'
import { type LogMessage, networkCountTopic, titleCountTopic } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { test } from 'tap'
import type { Division } from '../src/index.js'
import { ALL_TOPICS } from '../src/project/division.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, message, openTables, projectorOn, runToHead } from './pipeline.js'

const COUNT: [string, LogMessage] = [
  'title-count',
  message(titleCountTopic, { titleId: '4d530064', observedAt: '2026-03-14T20:00:00Z', online: 5 })
]
const NETWORK: [string, LogMessage] = [
  'network-count',
  message(networkCountTopic, { observedAt: '2026-03-14T20:00:00Z', online: 7 })
]

test('divided passes', async (t) => {
  const engine = await openTables()
  const { control } = engine
  t.beforeEach(() => emptyTables(control))
  const loaded = (...messages: readonly [string, LogMessage][]) => {
    const log = new MemoryLog()
    for (const [topic, each] of messages) log.append(topic, [each])
    return log
  }
  const reached = async () =>
    (
      await control.rows(
        "SELECT c.name AS name FROM checkpoint AS c WHERE c.name LIKE 'project:%' GROUP BY c.name ORDER BY c.name"
      )
    ).map(({ name }) => String(name))

  await t.test('a projector leaves the topics of another one alone, and says so', async (t) => {
    const registry = new Registry()
    const division: Division = {
      run: (_, pass) => pass({ ...ALL_TOPICS, has: (topic) => topic === 'network-count' }),
      end: async () => undefined
    }
    const projector = projectorOn(engine, loaded(COUNT, NETWORK), {
      registry,
      isShared: true,
      division: () => division
    })
    projector.start()
    const stateOf = async (name: string) =>
      (await projector.status()).projections.find(({ projection }) => projection === name)
    await until(
      async () => (await reached()).includes('project:network-count') && (await stateOf('title-count'))?.lag === 1
    )
    t.match(await stateOf('network-count'), { state: 'running', reason: null, lag: 0 })
    t.match(await stateOf('title-count'), { state: 'elsewhere', reason: null, lag: 1 })
    const metrics = await registry.metrics()
    t.match(metrics, /gamenet_projection_own\{projection="network-count"\} 1/)
    t.match(metrics, /gamenet_projection_own\{projection="title-count"\} 0/)
    await projector.stop()
    t.same(await control.rows('SELECT c.online AS online FROM title_count AS c'), [])
  })
  // Before its second step; and after all four, before their announcement.
  for (const lostAt of [2, 5])
    await t.test(`a pass that learns at check ${lostAt} that its topics are lost announces nothing`, async (t) => {
      let checks = 0
      let ends = 0
      const check = async () => {
        checks += 1
        if (checks === lostAt) throw new Error('another projector may have these topics')
      }
      const division: Division = {
        run: async (_, pass) => {
          // A pass that began before would have no step, or only some.
          const loaded = await control.rows(
            "SELECT c.next AS next FROM checkpoint AS c WHERE c.name = 'load:title-count'"
          )
          if (loaded.length === 0 || checks >= lostAt) throw new Error('it waits')
          return await pass({ has: () => true, check })
        },
        end: async () => {
          ends += 1
        }
      }
      const projector = projectorOn(engine, loaded(COUNT), { isShared: true, division: () => division })
      projector.start()
      await until(() => checks >= lostAt)
      await projector.stop()
      t.equal(checks, lostAt)
      t.ok(ends > 0, 'a stopped projector leaves its topics')
      t.same(await reached(), [])
      t.same(await control.rows('SELECT d.version AS version FROM data_change AS d'), [])
      await runToHead(engine, loaded(COUNT), { isShared: true })
      t.ok((await reached()).includes('project:title-count'))
      t.same(await control.rows('SELECT c.online AS online FROM title_count AS c FINAL'), [{ online: 5 }])
    })
})
