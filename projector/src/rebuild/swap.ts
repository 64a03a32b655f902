import { loadCheckpoint } from '@gamenet/schemas'
import { definitionOf } from '../project/serving-definitions.js'
import { Checkpoints } from '../store/checkpoint.js'
import type { Store } from '../store/operation.js'
import { readTableUuids } from '../store/table.js'
import { catchUpLate, copyLate } from './catch-up-late.js'
import { type RebuildContext, stepContextOf, unitOf } from './context.js'
import { catchUp } from './fill.js'
import type { SwapReport } from './rebuild.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { copyName, dropTables, swapTables } from './rebuild-tables.js'
import { deleteRetracted, levelCheckpoints, reload, reloadedTopic } from './reload.js'

/** So few events are caught up while live steps wait; more are taken before. */
const NEAR_EVENTS = 10_000
const APPROACHES_MAX = 20

/** Consumes later events, while live steps continue, until little is left. */
export async function approach(context: RebuildContext, record: RebuildRecord): Promise<number> {
  let sum = 0
  for (let n = 0; n < APPROACHES_MAX; n += 1) {
    const taken = await catchUpOnce(context, record)
    sum += taken
    if (taken <= NEAR_EVENTS) break
  }
  return sum
}

/** Takes what the live tables have at this instant; between passes both then stand at the same place. */
export async function catchUpOnce(context: RebuildContext, record: RebuildRecord): Promise<number> {
  const live = await Checkpoints.read(context.store)
  const topic = reloadedTopic(record)
  if (topic !== undefined) {
    const goesOn = async () => !context.signal.aborted
    await reload(context, record, topic, live.of(loadCheckpoint(topic.name)), {
      shouldContinue: goesOn,
      onStep: () => {}
    })
  }
  const [making, unit] = [stepContextOf(context, record), unitOf(record)]
  const taken = await catchUp({ step: making, unit, sizes: context.sizes }, live)
  return taken + (await catchUpLate(context.store, making, { unit, record }))
}

/**
 * Puts the tables that do not serve in the place of those that do, and the other way round: caught up, between two passes, all at
 * once for answers. Order: the intent → tables → `data_change` → definitions → the result; {@link resumeSwap}
 * continues after a crash in between. Afterwards the tables that served stand at the same place in the log as those that serve now.
 * @returns undefined when another process has taken the rebuild further meanwhile, and nothing was done
 */
export async function swap(
  context: RebuildContext,
  record: RebuildRecord,
  state: 'swapping' | 'rolling-back'
): Promise<SwapReport | undefined> {
  const { store, serving } = context
  const before = await approach(context, record)
  return await atRest(context, record, async () => {
    // Done twice, it would be undone.
    const records = await readRebuilds(store)
    if (records.find(({ id }) => id === record.id)?.state !== record.state) return undefined
    const caughtUp = before + (await catchUpOnce(context, record))
    return await withoutSteps(context, record, async (check) => {
      await resetVerifications(context, record, records)
      const served = new Map((await serving.current()).map((each) => [each.name, each]))
      await check()
      const intended = await storeRebuild(store, record, {
        state,
        reason: null,
        exchange: {
          uuids: Object.fromEntries(await store.do(readTableUuids, Object.keys(record.tables))),
          // What nobody knows yet has made no row, by whatever definition.
          definitions: Object.fromEntries(
            unitOf(record).map((own) => [own.name, definitionOf(served.get(own.name) ?? own)])
          )
        }
      })
      const heldMs = await finish(context, intended)
      return heldMs === undefined ? undefined : { id: record.id, caughtUp, heldMs }
    })
  })
}

/**
 * Runs work beside which no step of any rebuild runs, nor a retry of dead letters, where event tables change places. Before, the
 * one that is to serve gets the other one's rows that are not from the log, and loses what left it.
 */
async function withoutSteps<Result>(
  context: RebuildContext,
  record: RebuildRecord,
  work: (check: () => Promise<void>) => Promise<Result>
): Promise<Result> {
  const topic = reloadedTopic(record)
  if (topic === undefined) return await work(async () => undefined)
  return await context.steps.exclusive(async (check) => {
    const making = stepContextOf(context, record)
    await copyLate(context.store, making, topic)
    await deleteRetracted(context, making.store, topic)
    await levelCheckpoints(context, record)
    return await work(check)
  })
}

/** Runs work while nothing writes to tables that a rebuild has its own of. */
export async function atRest<Result>(
  { runner, loader }: RebuildContext,
  record: RebuildRecord,
  work: (check: () => Promise<void>) => Promise<Result>
): Promise<Result> {
  const betweenPasses = () => runner.betweenPasses(work)
  return reloadedTopic(record) === undefined ? await betweenPasses() : await loader.whilePaused(betweenPasses)
}

/**
 * Ends a swap that was cut off, for work between passes: continues one that has begun; takes back the intent of one that
 * has not, since the tables that serve have gone on meanwhile.
 */
export async function resumeSwap(context: RebuildContext, record: RebuildRecord): Promise<void> {
  const { store } = context
  if (await hasBegun(store, record)) {
    await finish(context, record)
    return
  }
  const withdrawn = await withdraw(store, record)
  // A process that lost the lock with PostgreSQL may have begun by now, and may not live to tell.
  const { state, exchange } = record
  if (await hasBegun(store, record)) await finish(context, await storeRebuild(store, withdrawn, { state, exchange }))
}

/**
 * Brings every table of interrupted swaps under the name that it keeps, or takes back the intent of a swap that has not begun,
 * so that damage is found under that name. For a process that is alone on the tables; {@link resumeSwap} does the rest later.
 */
export async function settleTableNames(store: Store): Promise<void> {
  for (const record of (await readRebuilds(store)).filter(isInterrupted)) {
    if (!(await hasBegun(store, record))) await withdraw(store, record)
    else await swapTables(store, new Map(Object.entries(record.tables)), record.exchange?.uuids ?? {})
  }
}

/** Whether a rebuild's swap has an intent and no result yet. */
export function isInterrupted({ state }: RebuildRecord): boolean {
  return state === 'swapping' || state === 'rolling-back'
}

async function hasBegun(store: Store, { tables: names, exchange }: RebuildRecord): Promise<boolean> {
  const now = await store.do(readTableUuids, Object.keys(names))
  return Object.entries(exchange?.uuids ?? {}).some(([table, uuid]) => now.get(table) !== uuid)
}

/** Takes back the intent of a swap that has not begun. */
async function withdraw(store: Store, record: RebuildRecord): Promise<RebuildRecord> {
  const before = record.state === 'swapping' ? 'filled' : 'swapped'
  return await storeRebuild(store, record, { state: before, exchange: null }, 'recovery')
}

/**
 * Continues a swap whose intent is stored; for work between passes. Resolves with how long answers were held, in ms;
 * undefined when another process has ended it meanwhile, which may be where the lock of passes was lost with PostgreSQL.
 */
async function finish(context: RebuildContext, record: RebuildRecord): Promise<number | undefined> {
  const { store, runner, serving, aroundSwap } = context
  const { exchange: begun } = record
  if (begun === null) throw new Error(`rebuild ${record.id} is ${record.state} without knowing what served before`)
  let isMeant = true
  const heldMs = await aroundSwap(record.unit, async () => {
    // It may have been announced for long.
    isMeant = (await readRebuilds(store)).some(({ id, version }) => id === record.id && version === record.version)
    if (!isMeant) return
    await swapTables(store, new Map(Object.entries(record.tables)), begun.uuids)
    await runner.announceAll(record.unit)
  })
  if (!isMeant) return undefined
  // No pass runs before this is done, nor after a crash before it is done again; so answers need not wait for it.
  await serving.install(unitOf(record))
  const isSwap = record.state === 'swapping'
  await storeRebuild(store, record, {
    state: isSwap ? 'swapped' : 'rolled-back',
    definitions: begun.definitions,
    exchange: null
  })
  if (isSwap) await dropReplaced(context, record)
  else await dropTables(store, tablesToDrop(record))
  runner.wake()
  return heldMs
}

/** Verifications against tables that no longer serve do not count: verify again before a swap. */
async function resetVerifications(
  { store }: RebuildContext,
  swapped: RebuildRecord,
  records: readonly RebuildRecord[]
): Promise<void> {
  for (const record of records) {
    if (record.id === swapped.id || record.state !== 'filled' || record.verification === null) continue
    if (record.unit.some((name) => swapped.unit.includes(name)))
      await storeRebuild(store, record, { verification: null })
  }
}

/** What earlier swaps left of these tables is older than what was replaced now: nobody would go back there. */
async function dropReplaced({ store }: RebuildContext, swapped: RebuildRecord): Promise<void> {
  for (const record of await readRebuilds(store)) {
    if (record.id === swapped.id || record.state !== 'swapped') continue
    if (!record.unit.some((name) => swapped.unit.includes(name))) continue
    await storeRebuild(store, record, { state: 'dropped', reason: `rebuild ${swapped.id} was swapped in` })
    await dropTables(store, tablesToDrop(record))
  }
}

/** Drops the tables that a swap left, after which nothing goes back to them. */
export async function dropOld({ store }: RebuildContext, swapped: RebuildRecord): Promise<RebuildRecord> {
  const dropped = await storeRebuild(store, swapped, { state: 'dropped' })
  await dropTables(store, tablesToDrop(swapped))
  return dropped
}

/** Everything that a rebuild made, copies to compare with among it. */
export function tablesToDrop({ tables, helpers }: RebuildRecord): string[] {
  const fresh = Object.values(tables)
  return [...fresh, ...fresh.map(copyName), ...Object.values(helpers)]
}
