import { projectionCheckpoint } from '@gamenet/schemas'
import { test } from 'tap'
import { filledByOwn, foreignStatements, Generations, ownerOf, ownersOf } from '../src/generations/generations.js'
import { migrate, type Projection, projections, type Store, storeOver, type Tables } from '../src/index.js'
import { LOCAL_PASS_LOCK } from '../src/internals.js'
import { titleCount as counts } from '../src/projections/title-count.js'
import type { RebuildContext } from '../src/rebuild/context.js'
import { dropLeftovers, nextId } from '../src/rebuild/leftovers.js'
import { type RebuildRecord, storeRebuild } from '../src/rebuild/rebuild-record.js'
import { RebuildSteps } from '../src/rebuild/rebuild-steps.js'
import { completeSwap } from '../src/rebuild/swap.js'
import { readCheckpoints, storeCheckpoints } from '../src/store/checkpoint.js'
import { eventOwner, namesOf, readFilled, readPointers, storeFilled, storePointers } from '../src/store/generation.js'
import { readBatchConsumers, storeConsumed } from '../src/store/late-batch.js'
import { replaceReadViews } from '../src/store/read-view.js'
import { around } from './around.js'
import { latch } from './latch.js'
import { laterGenerations, openTables, tablesOfRebuilds } from './pipeline.js'

/** A rebuild of one projection whose swap has an intent. */
function swapping(id: number, { owner, tables } = ownerOf(counts)): RebuildRecord {
  const times = { startedAt: '', changedAt: '', target: {}, events: {}, cuts: {}, costs: {}, verification: null }
  return {
    id,
    projection: counts.name,
    unit: [counts.name],
    waiting: [{ owner, tables: [...tables], generation: id }],
    replaces: [{ owner, tables: [...tables], generation: 0 }],
    helpers: {},
    reason: null,
    until: null,
    isByRecording: false,
    isFromLog: false,
    rate: null,
    retracts: null,
    key: null,
    isAutomatic: false,
    ...times,
    state: 'swapping',
    version: 1
  }
}

function contextOn(store: Store, more: Partial<RebuildContext>): RebuildContext {
  const runner = { announceChanged: async () => undefined, wakeForLate: () => undefined }
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

const SOUND = () => false

test('a swap that another process has reverted moves no pointer', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const at = { epoch: 0, partition: 0, next: 5 }
  await store.do(
    storeCheckpoints,
    ['load:title-count', 'project:title-count'].map((name) => ({ name, ...at }))
  )
  const record = await storeRebuild(store, swapping(1), {})
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
  const record = await storeRebuild(store, swapping(1), {})
  let completed: Promise<number | undefined> | undefined
  const overtaken = around(control, async (work, what) => {
    if (what.includes('FROM checkpoint')) {
      completed ??= completeSwap(contextOn(store, { catchUpMs: 60_000 }), record)
      await completed
    }
    return await work()
  })
  t.type(await completeSwap(contextOn(storeOver(overtaken), { catchUpMs: 60_000 }), record), 'number')
  const pointers = await store.do(readPointers)
  t.match(pointers.all(), [{ writes: 1, reads: 1 }])
  t.equal(pointers.serving.counterOf(counts.name), 1, 'answers before it, and after a rollback, have other identities')
})

test('answers find a table that only new statements make at its first generation until the swap is done', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const owner = projectionCheckpoint(counts.name)
  await store.do(storePointers, 1, [{ owner, tables: ['title_count'], writes: 3, reads: 3, readsChanged: 1 }])
  await store.do(storeCheckpoints, [{ name: 'load:title-count', epoch: 0, partition: 0, next: 5 }])
  const record = await storeRebuild(store, swapping(5, { owner, tables: ['title_count', 'other'] }), {})
  const stopping = new AbortController()
  const stopped = contextOn(store, { signal: stopping.signal })
  stopping.abort(new Error('the process stops'))
  await t.rejects(completeSwap(stopped, record), /stops/)
  const { serving } = await store.do(readPointers)
  t.equal(serving.nameOf('other'), 'other__0')
  t.equal(serving.nameOf('title_count'), 'title_count__3')
})

test('the statements of the program fill a generation without a row: a first one, and one whose row was lost', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  await store.do(storeFilled, [filledByOwn(counts, 7)])
  t.equal(await nextId(store), 8, 'a number is given once, even to an attempt that left nothing else')
  const generations = new Generations(store, [counts], SOUND)
  t.same((await generations.current()).projections, [counts])
  await store.do(storePointers, 1, [{ ...ownerOf(counts), writes: 5, reads: 5, readsChanged: 1 }])
  t.same((await generations.current()).projections, [counts])
  const stored = (await store.do(readFilled)).map(({ generation }) => generation)
  t.same(stored, [0, 5, 7])
})

test('steps write no tables that another version fills, nor those of the projections that read them', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const names = ['title-count', 'title-count-hour', 'title-count-day', 'title']
  const own = projections.filter(({ name }) => names.includes(name))
  await new Generations(store, own, SOUND).current()
  const later = own.map((each) => (each.name === 'title-count' ? { ...each, version: 2 } : each))
  const idleIn = async (program: readonly Projection[]) =>
    [...(await new Generations(store, program, SOUND).current()).idle].map(([{ name }, { state }]) => [
      name,
      state === 'outdated'
    ])
  t.same(await idleIn(own), [])
  const outdated = ['title-count', 'title-count-hour', 'title-count-day']
  t.same(
    await idleIn(later),
    outdated.map((name) => [name, true])
  )
  t.equal(await foreignStatements(store, later), undefined, 'a newer program starts')
  // Its rebuild is swapped in.
  const [first] = later.filter(({ name }) => name === 'title-count')
  if (first === undefined) throw new Error('there is no projection title-count')
  await store.do(storeFilled, [filledByOwn(first, 3)])
  await store.do(storePointers, 1, [{ ...ownerOf(first), writes: 3, reads: 0, readsChanged: 0 }])
  t.same(await idleIn(later), [])
  t.same(
    await idleIn(own),
    outdated.map((name) => [name, false]),
    'the older program no longer writes'
  )
  t.match(
    await foreignStatements(store, own),
    /^version 2 of the statements of title-count .* Start the newer program$/
  )
  const changed = own.map(
    (each): Projection =>
      each.name === 'title' && each.form !== 'fold' ? { ...each, select: `${each.select} LIMIT 5` } : each
  )
  t.match(await foreignStatements(store, changed), /^version 1 of the statements of title .* other ones of that/)
  t.same(
    (await idleIn(changed)).filter(([name]) => name === 'title'),
    [['title', false]]
  )
})

test('tables that a newer program fills are refused at a start', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  await store.do(storeFilled, [{ ...filledByOwn(counts, 4), version: 9 }])
  t.same(await migrate(control), [], 'while its rebuild is not swapped in, older programs continue')
  await store.do(storePointers, 1, [{ ...ownerOf(counts), writes: 4, reads: 0, readsChanged: 0 }])
  await t.rejects(migrate(control), {
    code: 'newer_store',
    message:
      /version 9 of the statements of title-count fills its tables, and this program has version 1\. Start the newer/
  })
})

test('a view of the first generation hides the checkpoints of another below it', async (t) => {
  const [owner] = ownersOf(projections)
  if (owner === undefined) throw new Error('there is no owner')
  const view = new Map([...namesOf(owner, 4), ...namesOf(owner, 0)])
  t.equal(view.get(owner.owner), owner.owner)
})

test('of two programs that begin the first generation at once, the lowest version counts', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const later = { ...counts, version: 2 }
  let landed = async () => {}
  const insert: Tables['insert'] = async (...row) => {
    landed = () => control.insert(...row)
    throw new Error('the answer was lost')
  }
  await t.rejects(new Generations(storeOver({ ...control, insert }), [counts], SOUND).current(), /was lost/)
  t.same((await new Generations(store, [later], SOUND).current()).projections, [later])
  await landed()
  t.same((await new Generations(store, [counts], SOUND).current()).projections, [counts])
  t.same((await new Generations(store, [later], SOUND).current()).projections, [], 'and the other one rebuilds')
})

test('tables of an attempt without a record are dropped after a day if other processes may be creating them, also if a rebuild has their number', async (t) => {
  const { control } = await openTables()
  await storeRebuild(storeOver(control), { ...swapping(4), state: 'filling' }, {})
  for (const name of ['title_count__4', 'title_latest__4', 'title_count__8', 'title_count__sample_0123abcd'])
    await control.execute(`CREATE TABLE ${name} AS title_count__0`)
  for (const [hours, left] of [
    [0, ['title_count__4', 'title_count__8', 'title_count__sample_0123abcd', 'title_latest__4']],
    [25, ['title_count__4']]
  ] as const) {
    const rows: Tables['rows'] = async (...asked) =>
      (await control.rows(...asked)).map((row) => ('hours' in row ? { ...row, hours } : row))
    await dropLeftovers({ store: storeOver({ ...control, rows }), projections, isShared: true, longestAnswerMs: 0 })
    t.same((await laterGenerations(control)).sort(), left)
  }
})

test('records of batches that dropped generations consumed are discarded, also after an interrupted drop', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const own = namesOf(ownerOf(counts), 3)
  await control.execute('CREATE TABLE title_count__3 AS title_count__0')
  await control.execute('CREATE TABLE event_title_count__3 AS event_title_count__0')
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
  const needs = { projections, isShared: false, longestAnswerMs: 0 }
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
    const record = swapping(id)
    const waiting = [eventOwner(counts.from), ownerOf(counts)].map(({ owner, tables }) => {
      return { owner, tables: [...tables], generation: id }
    })
    await storeRebuild(store, { ...record, waiting, isFromLog: true, state }, {})
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
  const [view] = await control.rows(
    "SELECT t.as_select AS shown FROM system.tables AS t WHERE t.database = currentDatabase() AND t.name = 'title_count'"
  )
  t.match(view?.shown, /title_count__7 FINAL$/, 'the view follows the pointer')

  const record = await storeRebuild(store, { ...swapping(7), state: 'swapped' }, {})
  await migrateDuring('FROM generation_pointer', async () => {
    await storeRebuild(store, record, { state: 'rolling-back' })
    await point(0, 2)
  })
  t.equal((await store.do(readPointers)).serving.nameOf('title_count'), 'title_count__0')
})
