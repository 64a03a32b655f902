import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { INSTANTS_END_MS, presenceTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { eventTables } from '../src/events/event-tables.js'
import {
  continueWithout,
  DamagedTables,
  detachDamagedBookkeeping,
  dropDetachedParts,
  type Projector,
  type ProjectorOptions,
  projections,
  storeOver,
  type Tables
} from '../src/index.js'
import { repairsOf } from '../src/rebuild/automatic.js'
import { readRebuilds } from '../src/rebuild/rebuild-record.js'
import { detachPart, readDamage, readLostBookkeeping } from '../src/store/damage.js'
import { tablesOf } from '../src/store/projection.js'
import { AnyEvent, append, appendedOf, compare } from './any-event.js'
import { foldOf, readRows } from './fold.js'
import { MemoryLog } from './memory-log.js'
import { message, newestVersion, openTables, projectorOn, runToHead, servingName } from './pipeline.js'

const presence = (username: string, minute: number) =>
  message(presenceTopic, {
    username,
    state: 'online',
    periodSeconds: 60,
    observedAt: `2026-03-14T22:0${minute}:00Z`
  })

/** A log with events of all topics that are not about people. */
function anyLog(seed: number): MemoryLog {
  const log = new MemoryLog()
  for (const each of fc.sample(appendedOf(AnyEvent, [0, 1]), { numRuns: 8, seed })) append(log, each)
  return log
}

test('damaged tables are marked with all that is computed from them, durably, and rebuilt', async (t) => {
  const { control, ...engine } = await openTables()
  const log = anyLog(4)
  const expected = foldOf(log)
  await runToHead(engine, log)
  const counts = await countsOf(control)
  const part = await flip(control, 'title_count__0')
  const damaged = await opened(t, control)
  t.notOk(damaged.has('title_count__0'), 'nothing is read at a start')
  await damaged.mark([['title_count__0', part]])
  t.ok(damaged.has('title_count__0'))
  t.notOk(damaged.has('network_count__0'))
  const again = await opened(t, control)
  t.match(await again.inUse(), [{ table: 'title_count', name: 'title_count__0', reason: part, left: null }])
  await repaired(t, engine, log, again)
  compare(await readRows(control), expected, true)
  t.same(await countsOf(control), counts, 'as many rows as before')
  t.not(await servingName(control, 'title_count'), 'title_count__0')
  t.same(await again.inUse(), [])
})

test('a mark whose record fails refuses answers, is repaired and reported, and is recorded with the next one', async (t) => {
  const { control } = await openTables()
  let fails = 1
  const insert: Tables['insert'] = async (...input) => {
    if (input[0] === 'damage' && fails-- > 0) throw new Error('the disk is full')
    await control.insert(...input)
  }
  const damaged = new DamagedTables(storeOver({ ...control, insert }), projections)
  const woken = damaged.marked(damaged.marks, new AbortController().signal)
  await t.rejects(damaged.mark([['title_count__0', 'a part']]), { message: 'the disk is full' })
  t.ok(damaged.has('title_count__0'))
  t.match(await damaged.inUse(), [{ name: 'title_count__0', reason: 'a part' }])
  await woken
  await damaged.mark([['title__0', 'another part']])
  const names = (await (await opened(t, control)).inUse()).map(({ name }) => name)
  t.same(names.sort(), ['title__0', 'title_count__0'])
})

test('a damaged event table is loaded from the log, with its read tables', async (t) => {
  const { control, ...engine } = await openTables()
  const log = anyLog(4)
  const expected = foldOf(log)
  await runToHead(engine, log)
  const counts = await countsOf(control)
  for (const table of ['event_title_count', 'event_network_count', 'event_leaderboard_entry', 'network_count_hour'])
    await breakPart(control, `${table}__0`)
  const damaged = await opened(t, control)
  t.ok(damaged.has('title_count__0') && damaged.has('network_count__0') && damaged.has('record_history__0'))
  await repaired(t, engine, log, damaged)
  compare(await readRows(control), expected, true)
  t.same(await countsOf(control), counts)
  t.same(damaged.gone, [])
})

test('the readable parts keep what the log no longer has, and what is in neither is named', async (t) => {
  const { control, ...engine } = await openTables()
  const log = new MemoryLog()
  const counts = fc.sample(appendedOf(AnyEvent, [0]), { numRuns: 14, seed: 4 })
  for (const each of counts) append(log, each)
  await runToHead(engine, log)
  const { topic } = log.partitions.find(({ records }) => records.length > 5) ?? { topic: '' }
  const table = eventTables.find((each) => each.topic.name === topic)?.table ?? ''
  const rows = async () =>
    (
      await control.rows(
        `SELECT e.offset AS offset FROM ${await servingName(control, table)} AS e FINAL ORDER BY offset`
      )
    ).map(({ offset }) => Number(offset))
  const all = await rows()
  // One part has offsets 0 and 1, and one the rest.
  await control.execute(`CREATE TABLE kept AS ${table}__0`)
  await control.execute(`INSERT INTO kept SELECT * FROM ${table}__0`)
  await control.execute(`TRUNCATE TABLE ${table}__0`)
  await control.execute(`INSERT INTO ${table}__0 SELECT * FROM kept WHERE offset < 2`)
  const lost = await partOf(control, `${table}__0`)
  await control.execute(`INSERT INTO ${table}__0 SELECT * FROM kept WHERE offset >= 2`)
  await control.execute('DROP TABLE kept')
  await breakPart(control, `${table}__0`, lost)
  // Retention has deleted offsets 0 to 3.
  const [partition] = log.partitions.filter((each) => each.topic === topic)
  partition?.records.splice(0, 4)
  Object.assign(partition ?? {}, { first: 4 })
  const damaged = await opened(t, control)
  await repaired(t, engine, log, damaged)
  t.same(
    await rows(),
    all.filter((offset) => offset > 1)
  )
  t.match(damaged.gone, [new RegExp(`positions 0 to 1 of ${topic} 0/${partition?.partition};`)])
  t.match((await opened(t, control)).gone, damaged.gone, 'also at the next start')
})

test('an event without a key whose person was not erased stops the repair, and nothing is dropped', async (t) => {
  const { control, ...engine } = await openTables()
  const log = new MemoryLog()
  log.append('presence', [presence('Ann', 1), presence('Ben', 2)])
  await runToHead(engine, log)
  await breakPart(control, 'event_presence__0')
  const gone = async () => new Map<number, Uint8Array>()
  const [erased, unknown] = [async (people: readonly number[]) => new Set(people), async () => new Set<number>()]
  for (const [what, options, left] of [
    ['an older write side', { areKeysLost: async () => true }, /PostgreSQL lacks keys/],
    ['another write side', { sealKeys: gone, erasedPeople: unknown }, /failed twice .* neither the key nor the erasure/]
  ] as const) {
    const damaged = await opened(t, control)
    const projector = started(engine, log, damaged, options)
    while ((await damaged.inUse()).some((each) => each.left === null)) await turn()
    while (!left.test(String((await damaged.inUse())[0]?.left))) await turn()
    const refused = { name: 'RebuildRefused', message: /Rows of event_presence may be missing/ }
    await t.rejects(projector.rebuilds.start('presence-latest'), refused)
    await projector.stop()
    t.equal(await servingName(control, 'event_presence'), 'event_presence__0', what)
    t.ok(damaged.has('presence_latest__0'), 'no answer is wrong')
  }
  const damaged = await opened(t, control)
  const projector = started(engine, log, damaged, { sealKeys: gone, erasedPeople: erased })
  while ((await damaged.inUse()).length > 0) await turn()
  await projector.caughtUp()
  await projector.stop()
  t.same(await control.rows(`SELECT 1 AS one FROM ${await servingName(control, 'event_presence')} AS e`), [], 'erased')
})

test('a repair that fails twice stops until the next start, and other tables are repaired', async (t) => {
  const { control, ...engine } = await openTables()
  const log = anyLog(4)
  await runToHead(engine, log)
  for (const table of ['title_count__0', 'network_count__0']) await breakPart(control, table)
  const damaged = await opened(t, control)
  const execute: Tables['execute'] = async (sql, ...rest) => {
    if (/^INSERT INTO title_count__\d/.test(sql)) throw new Error('the disk is bad')
    await engine.rebuild.execute(sql, ...rest)
  }
  const projector = started({ ...engine, rebuild: { ...engine.rebuild, execute } }, log, damaged)
  while ((await damaged.inUse()).length > 1 || !/failed twice/.test(String((await damaged.inUse())[0]?.left)))
    await turn()
  t.match(await damaged.inUse(), [{ table: 'title_count', left: /the disk is bad.*restart the service/ }])
  const records = await readRebuilds(storeOver(control))
  t.equal(records.filter(({ unit, state }) => unit.includes('title-count') && state === 'cancelled').length, 2)
  await projector.stop()
  const again = await opened(t, control)
  await repaired(t, engine, log, again)
  compare(await readRows(control), foldOf(log), true)
})

test('a table that the log fills with fewer events is not swapped in', async (t) => {
  const { control, ...engine } = await openTables()
  const log = new MemoryLog()
  log.append('presence', [presence('Ann', 1), presence('Ben', 2)])
  await runToHead(engine, log)
  const { path } = await partOf(control, 'event_presence__0')
  // Ben's event is unreadable in a log that is not the one that filled the table.
  const [first] = log.partitions[0]?.records ?? []
  const other = new MemoryLog()
  other.append('presence', [first ?? presence('Ann', 1), { ...presence('Ben', 2), value: '{' }])
  const damaged = await opened(t, control)
  await damaged.mark([['event_presence__0', path]])
  const projector = started(engine, other, damaged)
  while (!/failed twice/.test(String((await damaged.inUse())[0]?.left))) await turn()
  await projector.stop()
  t.match(
    (await damaged.inUse())[0]?.left,
    /have 1 events of presence 0\/0 below 2, the readable parts .* 2: the log is not/
  )
  t.equal(await servingName(control, 'event_presence'), 'event_presence__0')
  await repaired(t, engine, log, await opened(t, control))
  t.not(await servingName(control, 'event_presence'), 'event_presence__0')
})

test('undos are repaired before anything is loaded from the log', (t) => {
  const damagedOf = (...tables: readonly string[]) =>
    tables.map((table) => ({ table, name: `${table}__0`, reason: '', left: null }))
  const found = repairsOf(
    projections,
    damagedOf('event_title_count', 'title_count', 'import_retraction', 'network_count')
  )
  t.same(
    found.map(({ request: { projection, isFromLog }, damaged }) => [
      projection,
      isFromLog,
      damaged.map(({ table }) => table)
    ]),
    [
      ['import-retraction', false, ['import_retraction']],
      ['title-latest', true, ['event_title_count', 'title_count']],
      ['network-count', false, ['network_count']]
    ]
  )
  t.end()
})

test('the service continues with what is left of the bookkeeping', async (t) => {
  const { control, ...engine } = await openTables()
  const log = anyLog(4)
  await runToHead(engine, log)
  const store = storeOver(control)
  const ahead = (Date.now() + 60_000) * 1000
  await control.execute(`INSERT INTO data_change VALUES (${ahead}, 'title', '4d530064', 0, 1)`)
  for (const table of ['checkpoint', 'data_change']) await flip(control, table)
  t.ok(await detachDamagedBookkeeping(store))
  t.notOk(await detachDamagedBookkeeping(store))
  const damaged = await opened(t, control)
  const lost = ['checkpoint', 'data_change']
  t.same(
    await continueWithout(store, damaged),
    lost.map((table) => ({ table, reason: null }))
  )
  const rows = await control.rows(
    `SELECT DISTINCT d.projection AS name FROM data_change AS d
     WHERE d.version = ${await newestVersion(control)} AND d.key = '*' AND d.to_ms = ${INSTANTS_END_MS}`
  )
  t.same(new Set(rows.map(({ name }) => name)), new Set(projections.map(({ name }) => name)), 'everything has changed')
  await repaired(t, engine, log, damaged)
  compare(await readRows(control), foldOf(log), true)
  for (const table of lost) await store.do(dropDetachedParts, table)
  t.same(await store.do(readLostBookkeeping), [])
  await control.execute("INSERT INTO late_batch (id, topic) VALUES ('1', 'title')")
  await flip(control, 'late_batch')
  t.ok(await detachDamagedBookkeeping(store))
  t.same(await continueWithout(store, damaged), [{ table: 'late_batch', reason: null }])
  t.ok(
    projections.flatMap(tablesOf).every((table) => damaged.has(`${table}__0`)),
    'late events are in no range'
  )
  await store.do(dropDetachedParts, 'late_batch')
})

test('a repair that begins without checkpoints swaps in no table that lacks rows', async (t) => {
  const { control, ...engine } = await openTables()
  const log = anyLog(4)
  await runToHead(engine, log)
  const counts = await countsOf(control)
  await flip(control, 'checkpoint')
  t.ok(await detachDamagedBookkeeping(storeOver(control)))
  for (const table of ['event_network_count', 'title_count_hour']) await breakPart(control, `${table}__0`)
  const damaged = await opened(t, control)
  // The live loader, which begins again, is far behind the repair's.
  const insert: Tables['insert'] = async (...input) => {
    for (let turns = 0; turns < 10; turns += 1) await turn()
    await engine.loader.insert(...input)
  }
  const projector = started({ ...engine, loader: { ...engine.loader, insert } }, log, damaged)
  t.teardown(() => projector.stop())
  while ((await damaged.inUse()).length > 0) await turn()
  t.same(await countsOf(control), counts)
})

async function opened(t: Test, tables: Tables): Promise<DamagedTables> {
  const damaged = new DamagedTables(storeOver(tables), projections)
  await damaged.open()
  t.same(
    (await storeOver(tables).do(readDamage)).filter(({ kind, name }) => kind === 'damaged' && !damaged.has(name)),
    []
  )
  return damaged
}

type Lanes = Parameters<typeof projectorOn>[0]

function started(
  engine: Lanes,
  log: MemoryLog,
  damaged: DamagedTables,
  options: Pick<Partial<ProjectorOptions>, 'areKeysLost' | 'erasedPeople' | 'sealKeys'> = {}
): Projector {
  const projector = projectorOn(engine, log, { damaged, ...options })
  projector.start()
  return projector
}

/** Runs a projector until nothing in use is damaged and everything is projected. */
async function repaired(t: Test, engine: Lanes, log: MemoryLog, damaged: DamagedTables): Promise<void> {
  const projector = started(engine, log, damaged)
  try {
    while ((await damaged.inUse()).length > 0) await turn()
    await projector.caughtUp()
    t.same(
      (await projector.status()).projections.filter(({ state }) => state !== 'running'),
      []
    )
  } finally {
    await projector.stop()
  }
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20))
}

async function partOf(tables: Tables, table: string): Promise<{ part: string; path: string }> {
  const [row] = await tables.rows(
    `SELECT p.name AS part, p.path AS path FROM system.parts AS p
     WHERE p.database = currentDatabase() AND p.active AND p.table = {table: String} ORDER BY part LIMIT 1`,
    { table }
  )
  return { part: String(row?.part), path: String(row?.path) }
}

/** Changes a bit in the middle of a file of the first part of a table; returns the name of the part. */
async function flip(tables: Tables, table: string): Promise<string> {
  const { part, path } = await partOf(tables, table)
  const file = join(path, readdirSync(path).find((name) => name.endsWith('.bin')) ?? '')
  const bytes = readFileSync(file)
  const at = bytes.length >> 1
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
  writeFileSync(file, bytes)
  return part
}

/** Detaches a part of a table, as the engine does with an unreadable one at its start. */
async function breakPart(tables: Tables, table: string, given?: { part: string; path: string }): Promise<void> {
  const { part, path } = given ?? (await partOf(tables, table))
  await storeOver(tables).do(detachPart, { table, part })
  const folder = join(path, '..', 'detached')
  renameSync(join(folder, part), join(folder, `broken-on-start_${part}`))
}

/** Rows of event tables and read tables. */
async function countsOf(tables: Tables): Promise<Record<string, unknown>> {
  const counts: Record<string, unknown> = {}
  for (const name of [...eventTables.map(({ table }) => table), ...projections.flatMap(tablesOf)]) {
    const [row] = await tables.rows(`SELECT count() AS n FROM ${await servingName(tables, name)} AS t FINAL`)
    counts[name] = row?.n
  }
  return counts
}
