import { projectionCheckpoint } from '@gamenet/schemas'
import { test } from 'tap'
import { definitionOf, Generations, ownerOf, ownersOf } from '../src/generations/generations.js'
import { migrate, type Projection, projections, type Store, storeOver, type Tables } from '../src/index.js'
import { LOCAL_PASS_LOCK } from '../src/internals.js'
import type { RebuildContext } from '../src/rebuild/context.js'
import { dropLeftovers, nextId } from '../src/rebuild/leftovers.js'
import { type RebuildRecord, storeRebuild } from '../src/rebuild/rebuild-record.js'
import { RebuildSteps } from '../src/rebuild/rebuild-steps.js'
import { completeSwap } from '../src/rebuild/swap.js'
import { readCheckpoints, storeCheckpoints } from '../src/store/checkpoint.js'
import { eventOwner, namesOf, readPointers, storeDefinitions, storePointers } from '../src/store/generation.js'
import { readBatchConsumers, storeConsumed } from '../src/store/late-batch.js'
import { replaceReadViews } from '../src/store/read-view.js'
import { around } from './around.js'
import { latch } from './latch.js'
import { lockedPasses } from './locks.js'
import { laterGenerations, openTables, tablesOfRebuilds } from './pipeline.js'

const [counts] = projections.filter(({ name }) => name === 'title-count')
if (counts === undefined) throw new Error('there is no projection title-count')

/** A rebuild of one projection whose swap has an intent. */
function swapping(id: number, own: Projection): RebuildRecord {
  const replaces = { tables: {}, generations: {}, definitions: {} }
  const definitions = { [own.name]: definitionOf(own) }
  const times = { startedAt: '', changedAt: '', target: {}, events: {}, cuts: {}, costs: {}, verification: null }
  const plain = {
    tables: {},
    generations: {},
    helpers: {},
    reason: null,
    until: null,
    isFromLog: false,
    retracts: null
  }
  return {
    id,
    projection: own.name,
    unit: [own.name],
    definitions,
    replaces,
    ...plain,
    ...times,
    state: 'swapping',
    version: 1
  }
}

function contextOn(store: Store, more: Partial<RebuildContext>): RebuildContext {
  const runner = { announceAll: async () => undefined, wakeForLate: () => undefined }
  const signal = new AbortController().signal
  return {
    store,
    projections,
    runner,
    steps: new RebuildSteps(LOCAL_PASS_LOCK),
    catchUpMs: 0,
    signal,
    ...more
  } as RebuildContext
}

test('a swap that another process has reverted moves no pointer', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const at = { epoch: 0, partition: 0, next: 5 }
  await store.do(
    storeCheckpoints,
    ['load:title-count', 'project:title-count'].map((name) => ({ name, ...at }))
  )
  const record = await storeRebuild(store, swapping(1, counts), {})
  const looked = latch()
  const patient = around(control, async (work, what) => {
    if (what.includes('FROM late_batch') || what.includes('FROM checkpoint')) looked.open()
    return await work()
  })
  const other = completeSwap(contextOn(storeOver(patient), { catchUpMs: 60_000 }), record)
  await looked.opened
  // Moves the pointer back, and dies before it stores the new state.
  const dying = around(control, async (work, what) => {
    if (what === 'rebuild') throw new Error('the process dies')
    return await work()
  })
  await t.rejects(completeSwap(contextOn(storeOver(dying), {}), record), /dies/)
  await store.do(storeCheckpoints, [{ name: 'project:title-count__1', ...at }])
  t.equal(await other, undefined)
  t.match((await store.do(readPointers)).all(), [{ writes: 0, reads: 0 }])
})

test('a swap that another process completes meanwhile is reported as done', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const at = { epoch: 0, partition: 0, next: 5 }
  const readers = ['load:title-count', 'project:title-count', 'project:title-count__1']
  await store.do(
    storeCheckpoints,
    readers.map((name) => ({ name, ...at }))
  )
  await control.execute('CREATE TABLE title_count__1 AS title_count__0')
  const record = await storeRebuild(store, swapping(1, counts), {})
  let completed: Promise<number | undefined> | undefined
  const overtaken = around(control, async (work, what) => {
    if (what.includes('FROM checkpoint')) {
      completed ??= completeSwap(contextOn(store, { catchUpMs: 60_000 }), record)
      await completed
    }
    return await work()
  })
  t.type(await completeSwap(contextOn(storeOver(overtaken), { catchUpMs: 60_000 }), record), 'number')
  t.match((await store.do(readPointers)).all(), [{ writes: 1, reads: 1 }])
})

test('answers find a table that only new statements make at its first generation until the swap is done', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const owner = projectionCheckpoint(counts.name)
  await store.do(storePointers, 1, [{ owner, tables: ['title_count'], writes: 3, reads: 3, readsChanged: 1 }])
  const wider = { ...counts, form: 'fold', key: {}, reads: {}, into: { title_count: [], other: [] } } as Projection
  await store.do(storeCheckpoints, [{ name: 'load:title-count', epoch: 0, partition: 0, next: 5 }])
  const record = await storeRebuild(store, swapping(5, wider), {})
  const stopping = new AbortController()
  const stopped = contextOn(store, { signal: stopping.signal })
  stopping.abort(new Error('the process stops'))
  await t.rejects(completeSwap(stopped, record), /stops/)
  const { serving } = await store.do(readPointers)
  t.equal(serving.nameOf('other'), 'other__0')
  t.equal(serving.nameOf('title_count'), 'title_count__3')
})

test('a new projection waits while no exclusive lock is possible, and all others serve', async (t) => {
  const { control } = await openTables()
  const [known = [], all = []] = [['title-count'], ['title-count', 'title-count-hour']].map((names) =>
    projections.filter(({ name }) => names.includes(name))
  )
  await new Generations(storeOver(control), known).register(lockedPasses())
  const newer = new Generations(storeOver(control), all)
  await t.rejects(newer.register({ exclusive: () => Promise.reject(new Error('PostgreSQL is away')) }), /is away/)
  t.same((await newer.current()).projections, known)
  await newer.register(lockedPasses())
  t.same((await newer.current()).projections, all)
})

test('a projection is registered during a rebuild that began before', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const all = projections.filter(({ name }) => name === 'title-count')
  await store.do(
    storeDefinitions,
    all.map((each) => ({ projection: each.name, generation: 7, definition: definitionOf(each) }))
  )
  t.equal(await nextId(store), 8, 'a number is given once, even to an attempt that left nothing else')
  const generations = new Generations(store, all)
  await generations.register(lockedPasses())
  t.same((await generations.current()).projections, all)
})

test('a generation whose definition was lost with a damaged part continues with the statements of the program', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  await new Generations(store, [counts]).register(lockedPasses())
  await store.do(storePointers, 1, [{ ...ownerOf(counts), writes: 7, reads: 7, readsChanged: 1 }])
  const generations = new Generations(store, [counts])
  await generations.register(lockedPasses())
  t.same((await generations.current()).projections, [])
  await generations.register(lockedPasses())
  t.same((await generations.current()).projections, [counts])
})

test('a view of the first generation hides the checkpoints of another below it', async (t) => {
  const [owner] = ownersOf(projections)
  if (owner === undefined) throw new Error('there is no owner')
  const view = new Map([...namesOf(owner, 4), ...namesOf(owner, 0)])
  t.equal(view.get(owner.owner), owner.owner)
})

test('a definition stored without an acknowledgement serves nevertheless', async (t) => {
  const { control } = await openTables()
  const all = projections.filter(({ name }) => name === 'title-count')
  let landed = async () => {}
  const insert: Tables['insert'] = async (...row) => {
    landed = () => control.insert(...row)
    throw new Error('the answer was lost')
  }
  const serving = new Generations(storeOver({ ...control, insert }), all)
  await t.rejects(serving.register(lockedPasses()), /was lost/)
  t.same((await serving.current()).projections, [])
  await landed()
  await serving.register(lockedPasses())
  t.same((await serving.current()).projections, all)
})

test("of two programs that start at once on empty tables, the first one's definitions serve in both", async (t) => {
  const { control } = await openTables()
  const older = projections.filter(({ name }) => name === 'title-count')
  const newer = older.map(
    (each): Projection => (each.form === 'fold' ? each : { ...each, select: `${each.select} LIMIT 5` })
  )
  const [stores, looked] = [latch(), latch()]
  const insert: Tables['insert'] = async (...row) => {
    stores.open()
    await looked.opened
    // Enough time to read again and to store.
    for (let questions = 0; questions < 5; questions += 1) await control.rows('SELECT 1 AS one')
    await control.insert(...row)
  }
  const rows: Tables['rows'] = async (...asked) => {
    const found = await control.rows(...asked)
    looked.open()
    return found
  }
  const passes = lockedPasses()
  const first = new Generations(storeOver({ ...control, insert }), older)
  const second = new Generations(storeOver({ ...control, rows }), newer)
  const registered = first.register(passes)
  await stores.opened
  await Promise.all([registered, second.register(passes)])
  const stored = await control.rows('SELECT d.definition AS definition FROM generation_definition AS d')
  t.same(
    stored,
    older.map((each) => ({ definition: definitionOf(each) })),
    'the second had nothing to say'
  )
  for (const serving of [first, second])
    t.same((await serving.current()).projections.map(definitionOf), older.map(definitionOf))
  t.same(
    [first, second].map((serving) => serving.isOutdated('title-count')),
    [false, true]
  )
})

test('a projection of a topic that only another program has keeps its table, and others continue', async (t) => {
  const { control } = await openTables()
  const all = projections.filter(({ name }) => ['title-count', 'title-count-hour'].includes(name))
  const store = storeOver(control)
  const generations = new Generations(store, all)
  await generations.register(lockedPasses())
  const definition = definitionOf({ ...counts, from: { ...counts.from, name: 'title-number' } })
  await store.do(storeDefinitions, [{ projection: counts.name, generation: 3, definition }])
  const owner = { owner: projectionCheckpoint(counts.name), tables: ['title_count'] }
  await store.do(storePointers, 1, [{ ...owner, writes: 3, reads: 3, readsChanged: 1 }])
  const current = await generations.current()
  t.same(
    current.projections.map(({ from }) => from.name),
    ['title-number', 'title-count']
  )
  t.equal(current.names.get('event_title_number'), 'event_title_number__0')
  t.ok(generations.isOutdated(counts.name))
})

test('tables of an attempt without a record are dropped after a day if other processes may be creating them, also if a rebuild has their number', async (t) => {
  const { control } = await openTables()
  await storeRebuild(
    storeOver(control),
    { ...swapping(4, counts), tables: { title_count: 'title_count__4' }, state: 'filling' },
    {}
  )
  for (const name of ['title_count__4', 'title_latest__4', 'title_count__8', 'title_count__sample_0123abcd'])
    await control.execute(`CREATE TABLE ${name} AS title_count__0`)
  for (const [hours, left] of [
    [0, ['title_count__4', 'title_count__8', 'title_count__sample_0123abcd', 'title_latest__4']],
    [25, ['title_count__4']]
  ] as const) {
    const rows: Tables['rows'] = async (...asked) =>
      (await control.rows(...asked)).map((row) => ('hours' in row ? { ...row, hours } : row))
    await dropLeftovers({ store: storeOver({ ...control, rows }), isShared: true, longestAnswerMs: 0 })
    t.same((await laterGenerations(control)).sort(), left)
  }
})

test('records of batches that dropped generations consumed are discarded, also after an interrupted drop', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const own = namesOf(ownerOf(counts), 3)
  await control.execute('CREATE TABLE title_count__3 AS title_count__0')
  await control.execute('CREATE TABLE event_title_count__3 AS event_title_count__0')
  const definitions = [0, 3, 4].map((generation) => ({
    projection: counts.name,
    generation,
    definition: definitionOf(counts)
  }))
  await store.do(storeDefinitions, definitions)
  const owners = [ownerOf(counts), eventOwner(counts.from)]
  await store.do(
    storePointers,
    1,
    owners.map((owner) => ({ ...owner, writes: 3, reads: 3, readsChanged: 1 }))
  )
  const lost = ['load:title-count', 'project:title-count', 'project:title-count__4', 'slices:title-count__4']
  const left = ['gone:title-count', 'load:title', 'load:title-count__3', 'project:title-count__3', 'project:unknown__4']
  const readers = [...lost, ...left, 'kept:title-count__4']
  await store.do(
    storeCheckpoints,
    readers.map((name) => ({ name, epoch: 1, partition: 0, next: 5 }))
  )
  const taken = ['project:title-count', 'project:title-count__4', 'project:title-count__3']
  await store.do(
    storeConsumed,
    taken.map((consumer) => ({ id: 'a', consumer }))
  )
  const found = async () => {
    const checkpoints = await store.do(readCheckpoints)
    return [checkpoints.map(({ name }) => name).sort(), await store.do(readBatchConsumers)]
  }
  const needs = { isShared: false, longestAnswerMs: 0 }
  const execute: Tables['execute'] = async (sql, ...asked) => {
    if (sql.startsWith('ALTER TABLE checkpoint')) throw new Error('the process died')
    await control.execute(sql, ...asked)
  }
  await t.rejects(dropLeftovers({ store: storeOver({ ...control, execute }), ...needs }), /the process died/)
  t.notOk((await tablesOfRebuilds(control)).includes('title_count__0'), 'the tables are gone')
  await dropLeftovers({ store, ...needs })
  // The engine deletes the rows by itself.
  while ((await found()).flat().length > left.length + 1) await new Promise(setImmediate)
  t.same(await found(), [left, [own.get('project:title-count')]])
})

test('pointers whose rows are lost are restored from the records of rebuilds', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  for (const [id, state] of [
    [2, 'dropped'],
    [5, 'swapped'],
    [6, 'rolled-back'],
    [7, 'filled']
  ] as const) {
    await storeRebuild(store, { ...swapping(id, counts), isFromLog: true, state }, {})
    await store.do(storeDefinitions, [{ projection: counts.name, generation: id, definition: definitionOf(counts) }])
    for (const table of ['title_count', 'event_title_count'])
      await control.execute(`CREATE TABLE ${table}__${id} AS ${table}__0`)
  }
  // The row of an earlier swap, in a part that was not lost.
  const owner = { owner: projectionCheckpoint(counts.name), tables: ['title_count'] }
  await store.do(storePointers, 1, [{ ...owner, writes: 2, reads: 2, readsChanged: 1 }])
  t.same(await migrate(control), [])
  const { serving } = await store.do(readPointers)
  t.same(['title_count', 'event_title_count', 'title'].map(serving.nameOf), [
    'title_count__5',
    'event_title_count__5',
    'title__0'
  ])
  t.ok(serving.counterOf(counts.name) > 14, 'no identity of an answer stands for other tables')
})

test('the start of another process does not undo a concurrent swap or rollback', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const owner = { owner: projectionCheckpoint(counts.name), tables: ['title_count'] }
  const point = async (generation: number, version: number) =>
    await store.do(storePointers, version, [{ ...owner, writes: generation, reads: generation, readsChanged: version }])
  const migrateDuring = async (place: string, work: () => Promise<unknown>) => {
    let isDone = false
    const tables = around(control, async (call, what) => {
      if (what.includes(place) && !isDone) {
        isDone = true
        await work()
      }
      return await call()
    })
    t.same(await migrate(tables), [])
    t.ok(isDone)
  }
  await control.execute('CREATE TABLE title_count__7 AS title_count__0')
  await migrateDuring("t.engine = 'View'", async () => {
    await point(7, 1)
    await store.do(replaceReadViews, { all: false })
  })
  const [view] = await control.rows("SELECT t.as_select AS shown FROM system.tables AS t WHERE t.name = 'title_count'")
  t.match(view?.shown, /title_count__7 FINAL$/, 'the view follows the pointer')

  const record = await storeRebuild(store, { ...swapping(7, counts), state: 'swapped' }, {})
  await store.do(storeDefinitions, [{ projection: counts.name, generation: 7, definition: definitionOf(counts) }])
  await migrateDuring('FROM generation_pointer', async () => {
    await storeRebuild(store, record, { state: 'rolling-back' })
    await point(0, 2)
  })
  t.equal((await store.do(readPointers)).serving.nameOf('title_count'), 'title_count__0')
})
