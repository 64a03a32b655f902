import { readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { INSTANTS_END_MS } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { eventTables } from '../src/events/event-tables.js'
import {
  beginRepair,
  cancelRebuilds,
  dropLostParts,
  findLostParts,
  incompleteTableIn,
  projections,
  readMissingEvents,
  repairOf,
  storeOver,
  type Tables
} from '../src/index.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from '../src/rebuild/rebuild-record.js'
import { tablesOf } from '../src/store/projection.js'
import { AnyEvent, append, appendedOf, compare } from './any-event.js'
import { foldOf, readRows } from './fold.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, newestVersion, openTables, projectorOn, runToHead } from './pipeline.js'

const readTables = projections.flatMap(tablesOf)

test('lost rows of any table are restored, or it is reported what is lost', async (t) => {
  const engine = await openTables()
  const all = await engine.control.rows(
    `SELECT splitByString('__', t.name)[1] AS name, t.engine_full AS made FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree'`
  )
  /** Nothing is lost with these tables: the recorded work is repeated. */
  const harmless = ['checkpoint', 'erasure', 'late_batch_taken', 'rebuild_owner']
  for (const { name, made } of all) {
    t.notMatch(made, /fsync|suspicious/, `${name} is flushed as all are`)
    const repair = repairOf(projections, new Set([String(name)]))
    const isMade = repair.topics.length > 0 || repair.projections.length > 0 || repair.changesAreLost
    const ways = [isMade, repair.lasting.has(String(name)), harmless.includes(String(name))]
    t.equal(ways.filter(Boolean).length, 1, String(name))
  }
})

test('rows of detached parts are restored, of any tables', async (t) => {
  const engine = await openTables()
  const log = new MemoryLog()
  for (const each of fc.sample(appendedOf(AnyEvent, [0, 1]), { numRuns: 6, seed: 4 })) append(log, each)
  const expected = foldOf(log)
  for (const [what, damaged] of [
    ['event tables', eventTables.map(({ table }) => table)],
    ['read tables', readTables],
    ['bookkeeping', ['dead_letter', 'late_batch', 'late_batch_taken', 'checkpoint']]
  ] as const) {
    await emptyTables(engine.control)
    await runToHead(engine, log)
    const before = await countsOf(engine.control)
    const broken = await breakParts(engine.control, damaged)
    const lost = await findLostParts(storeOver(engine.control))
    t.same(new Set(lost.map(({ table }) => table)), new Set(broken), `${what}: found`)
    const repair = repairOf(projections, new Set(broken))
    const extents = new Map(await Promise.all(topicNames.map(async (name) => [name, await log.extents(name)] as const)))
    const targets = await beginRepair(storeOver(engine.control), projections, repair, extents)
    t.same(await readMissingEvents(storeOver(engine.control)), [])
    const heads = log.partitions.filter(({ records }) => records.length > 0).length
    t.equal(targets.length, heads, `${what}: answers wait for the end of every topic`)
    const projector = projectorOn(engine, log)
    projector.start()
    await projector.caughtUp({ targets })
    await projector.stop()
    compare(await readRows(engine.control), expected, true)
    t.same(await countsOf(engine.control), before, `${what}: as many rows as before`)
    await dropLostParts(storeOver(engine.control), lost)
    t.same(await findLostParts(storeOver(engine.control)), [])
  }
})

test('a log without its beginning is loaded from its first event, and the missing ones are reported', async (t) => {
  const engine = await openTables()
  const log = new MemoryLog()
  for (const each of fc.sample(appendedOf(AnyEvent, [0]), { numRuns: 12, seed: 4 })) append(log, each)
  await runToHead(engine, log)
  const [topic = ''] = log.partitions.filter(({ records }) => records.length > 2).map((each) => each.topic)
  const [extent] = await log.extents(topic)
  if (extent === undefined) throw new Error('the log has no such topic')
  const table = eventTables.find((each) => each.topic.name === topic)?.table ?? ''
  const begin = () =>
    beginRepair(
      storeOver(engine.control),
      projections,
      repairOf(projections, new Set([table])),
      new Map([[topic, [{ ...extent, first: 2 }]]])
    )
  const targets = await begin()
  const gone = [{ topic, table, epoch: 0, partition: extent.partition, next: 2 }]
  t.same(await readMissingEvents(storeOver(engine.control)), gone)
  t.match(targets, [{ topic, next: extent.next }])
  const rows = await engine.control.rows(
    `SELECT max(c.next) AS next FROM checkpoint AS c WHERE c.name = 'load:${topic}'`
  )
  t.same(rows, [{ next: '2' }])
  await engine.control.execute(`DELETE FROM checkpoint WHERE name = 'load:${topic}'`)
  await begin()
  t.same(
    await readMissingEvents(storeOver(engine.control)),
    gone,
    'also after a crash that forgot how far it was loaded'
  )
})

test('rebuilds that would continue without the lost rows are cancelled, others continue', async (t) => {
  const { control } = await openTables()
  const store = async (id: number, change: Partial<RebuildRecord>) =>
    await storeRebuild(storeOver(control), { ...RECORD, id }, change)
  const waiting = [{ owner: 'project:title', tables: ['title'], generation: 1 }]
  const ofTitle = { unit: ['title'], waiting }
  const ofCount = {
    unit: ['network-count'],
    waiting: [{ owner: 'project:network-count', tables: ['network_count'], generation: 2 }]
  }
  const cases = [
    ['reads lost rows', { ...ofCount, state: 'filled' }, 'cancelled'],
    ['lost rows itself', { ...ofTitle, state: 'paused' }, 'cancelled'],
    ['neither', { unit: ['title'], state: 'filling' }, 'filling'],
    ['what it replaced lost rows', { ...ofTitle, state: 'swapped' }, 'dropped'],
    ['what it replaced is whole', { ...ofCount, state: 'swapped' }, 'swapped'],
    ['took an import back that is loaded again', { ...ofCount, retracts: 'a', state: 'dropped' }, 'cancelled'],
    ['took another topic back', { ...ofTitle, waiting: [], retracts: 'b', state: 'dropped' }, 'dropped']
  ] as const
  for (const [n, [, change]] of cases.entries()) await store(n + 1, change as Partial<RebuildRecord>)
  const damaged = new Set(['event_network_count', 'import_retraction', 'title__1'])
  t.same(await cancelRebuilds(storeOver(control), repairOf(projections, damaged)), [6, 4, 2, 1])
  const states = new Map((await readRebuilds(storeOver(control))).map(({ id, state }) => [id, state]))
  for (const [n, [what, , state]] of cases.entries()) t.equal(states.get(n + 1), state, what)
})

const RECORD: RebuildRecord = {
  id: 0,
  projection: 'title',
  unit: [],
  waiting: [],
  helpers: {},
  state: 'filling',
  reason: null,
  until: null,
  isFromLog: false,
  retracts: null,
  isAutomatic: false,
  startedAt: '2026-01-01T00:00:00.000Z',
  changedAt: '2026-01-01T00:00:00.000Z',
  target: {},
  events: {},
  cuts: {},
  costs: {},
  verification: null,
  replaces: null,
  version: 0
}

test('lost rows of changes count as a change of everything', async (t) => {
  const engine = await openTables()
  const ahead = (Date.now() + 60_000) * 1000
  await engine.control.execute(`INSERT INTO data_change VALUES (${ahead}, 'title', '4d530064', 0, 1)`)
  const repair = repairOf(projections, new Set(['data_change']))
  t.same(await beginRepair(storeOver(engine.control), projections, repair, new Map()), [])
  t.equal(await newestVersion(engine.control), ahead + 1)
  const rows = await engine.control.rows(
    `SELECT d.projection AS name FROM data_change AS d
     WHERE d.version = ${ahead + 1} AND d.key = '*' AND d.from_ms = 0 AND d.to_ms = ${INSTANTS_END_MS}`
  )
  t.same(new Set(rows.map(({ name }) => name)), new Set(projections.map(({ name }) => name)))
})

test('the incomplete table of a statement is identified', (t) => {
  const incomplete = new Set(['title'])
  t.equal(incompleteTableIn('SELECT t.title FROM {match_list: Identifier} AS t', incomplete), undefined)
  const joined = 'SELECT 1 FROM {player: Identifier} AS p JOIN {title: Identifier} AS t ON t.a = p.a'
  t.equal(incompleteTableIn(joined, incomplete), 'title')
  const positions = 'SELECT c.next AS next FROM checkpoint AS c WHERE c.name = 1'
  t.equal(incompleteTableIn(positions, incomplete), undefined)
  t.equal(incompleteTableIn(positions, new Set(['checkpoint'])), 'checkpoint')
  t.end()
})

const topicNames = eventTables.map(({ topic }) => topic.name)

/** Rows of event tables and read tables; of `data_change` there are more each time. */
async function countsOf(tables: Tables): Promise<Record<string, unknown>> {
  const counts: Record<string, unknown> = {}
  for (const name of [...eventTables.map(({ table }) => table), ...readTables, 'dead_letter']) {
    const [row] = await tables.rows(`SELECT count() AS n FROM ${name} AS t FINAL`)
    counts[name] = row?.n
  }
  return counts
}

/** Detaches the first part of each of these tables, as the engine does with an unreadable one. */
async function breakParts(tables: Tables, names: readonly string[]): Promise<string[]> {
  const parts = await tables.rows(
    `SELECT p.table AS table, min(p.name) AS part, any(t.data_paths[1]) AS path FROM system.parts AS p
     JOIN system.tables AS t ON t.database = p.database AND t.name = p.table
     WHERE p.database = currentDatabase() AND p.active AND has({names: Array(String)}, splitByString('__', p.table)[1]) GROUP BY p.table`,
    { names }
  )
  for (const { table, part, path } of parts) {
    await tables.execute(`ALTER TABLE ${table} DETACH PART '${part}'`)
    const folder = join(String(path), 'detached')
    for (const name of readdirSync(folder)) renameSync(join(folder, name), join(folder, `broken-on-start_${name}`))
  }
  return parts.map(({ table }) => String(table).replace(/__0$/, ''))
}
