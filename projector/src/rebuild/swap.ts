import { generationName, loadCheckpoint, pause, projectionCheckpoint } from '@gamenet/schemas'
import { definitionOf, ownersOf } from '../project/generations.js'
import { Checkpoints, readCheckpoints } from '../store/checkpoint.js'
import { copyDeadLetters } from '../store/dead-letter.js'
import { type Owner, readPointers, storePointers } from '../store/generation.js'
import { readPending } from '../store/late-batch.js'
import { replaceReadViews } from '../store/read-view.js'
import { catchUpLate, copyLate } from './catch-up-late.js'
import { liveOf, ownersIn, type RebuildContext, reloadedTopic, stepContextOf, unitOf, waitingNames } from './context.js'
import { RebuildRefused, type SwapReport } from './contract.js'
import { catchUp } from './fill.js'
import { requireNoImportUndo } from './find-rebuild.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { copyName } from './rebuild-tables.js'
import { deleteRetracted, reload } from './reload.js'

/*
 * A swap moves two pointers. First `writes`: from now on live steps write the generation that waited, and the one that answers read
 * stands still. When ordinary passes have caught up, `reads`: new answers read the generation that live steps write. No answer waits, and
 * each reads one generation, since it reads the pointers once. New data is late by the time between, about one pass.
 */

/** So few events are left to ordinary passes; more are consumed before. */
const NEAR_EVENTS = 10_000
const APPROACHES_MAX = 20
/** Time for ordinary passes to consume what was left; they take about one pass. */
export const CATCH_UP_MS = 60_000
const LOOK_MS = 25

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

/** Consumes the events that the live tables have now; between passes both then have the same position. */
export async function catchUpOnce(context: RebuildContext, record: RebuildRecord): Promise<number> {
  const live = await liveOf(context)
  const checkpoints = await Checkpoints.read(live.store)
  const topic = reloadedTopic(record)
  if (topic !== undefined) {
    await reload(context, record, topic, checkpoints.of(loadCheckpoint(topic.name)), {
      shouldContinue: async () => !context.signal.aborted,
      onStep: () => {}
    })
  }
  const [step, unit] = [stepContextOf(context, record, live), unitOf(record)]
  const taken = await catchUp({ step, unit, sizes: context.sizes }, checkpoints)
  return taken + (await catchUpLate(live, step, { unit, record }))
}

/**
 * Lets answers read the generations that wait, and lets those wait that they read: `record` is filled or was swapped. Order: the
 * intent → `writes` → caught up → `reads` → `data_change` → the result; {@link completeSwap} continues after a crash in between.
 * @returns undefined when another process has taken the rebuild further meanwhile, and nothing was done
 */
export async function swap(
  context: RebuildContext,
  record: RebuildRecord,
  state: 'swapping' | 'rolling-back'
): Promise<SwapReport | undefined> {
  const { store, generations } = context
  const caughtUp = await approach(context, record)
  const intended = await context.steps.exclusive(async (check) => {
    // Done twice, it would be undone.
    const records = await readRebuilds(store)
    if (records.find(({ id }) => id === record.id)?.state !== record.state) return undefined
    requireNoOtherSwap(record, records)
    if (state === 'rolling-back') await requireNoImportUndo(context, record)
    await resetVerifications(context, record, records)
    const { pointers, projections } = await generations.current()
    const live = new Map(projections.map((each) => [each.name, each]))
    await check()
    return await storeRebuild(store, record, {
      state,
      reason: null,
      replaces: {
        generations: Object.fromEntries(ownersIn(record).map((owner) => [owner.owner, pointers.of(owner).reads])),
        tables: Object.fromEntries(
          ownersIn(record).flatMap(({ tables }) => tables.map((table) => [table, pointers.serving.nameOf(table)]))
        ),
        // What is not registered yet has made no row, by whatever definition.
        definitions: Object.fromEntries(
          unitOf(record).map((own) => [own.name, definitionOf(live.get(own.name) ?? own)])
        )
      }
    })
  })
  if (intended === undefined) return undefined
  const lateMs = await completeSwap(context, intended)
  return lateMs === undefined ? undefined : { id: record.id, caughtUp, lateMs }
}

/** Whether a rebuild's swap has an intent and no result yet. */
export function isInterrupted({ state }: RebuildRecord): boolean {
  return state === 'swapping' || state === 'rolling-back'
}

/**
 * Continues a swap whose intent is stored, from wherever it is; several processes may do so at once. Throws a {@link RebuildRefused} when
 * passes do not catch up in time: then nothing is swapped.
 * @returns for how long answers got no new data, in ms; undefined when another process has taken the rebuild further
 */
export async function completeSwap(context: RebuildContext, record: RebuildRecord): Promise<number | undefined> {
  const { store, runner } = context
  const begunAt = performance.now()
  let moved = await move(context, record, 'writes')
  if (moved === 'writes') {
    const reason = await untilCaughtUp(context, record)
    moved = await move(context, record, reason === undefined ? 'reads' : 'back')
    if (moved === 'back')
      throw new RebuildRefused(
        `Rebuild ${record.id} was not swapped: ${reason} within ${context.catchUpMs / 1000} s. See gamenet status, then repeat it.`
      )
  }
  if (moved === undefined) return undefined
  const lateMs = performance.now() - begunAt
  await runner.announceAll(record.unit)
  const { replaces } = record
  if (replaces === null) throw new Error(`rebuild ${record.id} is ${record.state} without knowing what it replaces`)
  // Not beside another swap: a rollback could begin of what is dropped.
  await context.steps.exclusive(async () => {
    await store.do(replaceReadViews, { all: false })
    const isSwap = record.state === 'swapping'
    await storeRebuild(store, record, { state: isSwap ? 'swapped' : 'rolled-back', ...replaces, replaces: null })
    if (isSwap) await dropReplaced(context, record)
  })
  return lateMs
}

/**
 * Moves the pointers of a rebuild's owners, all at once: `writes` to the waiting generations, `reads` after it, or `writes` back to where
 * answers read.
 * @returns `reads` if answers read the waiting generations; undefined when another process has taken the rebuild further
 */
async function move(context: RebuildContext, record: RebuildRecord, what: Move): Promise<Move | undefined> {
  const { store } = context
  return await context.steps.exclusive(async (check) => {
    const newest = (await readRebuilds(store)).find(({ id }) => id === record.id)
    if (newest?.version !== record.version) return undefined
    const live = await liveOf(context)
    const owners = ownersIn(record)
    const pointers = owners.map((owner) => live.pointers.of(owner))
    const goal = ({ owner }: Owner) => record.generations[owner] ?? record.id
    if (pointers.every((each) => each.reads === goal(each))) return 'reads'
    const isWritten = pointers.every((each) => each.writes === goal(each))
    if (what === 'writes' && isWritten) return what
    // Another process has set it back: passes write the former generation again, perhaps beyond what this one has seen.
    if (what === 'reads' && !isWritten) return undefined
    const topic = reloadedTopic(record)
    if (what === 'writes' && topic !== undefined) {
      // Rows that are not from the log, and those that have left it: no retry of a dead letter runs meanwhile.
      const step = stepContextOf(context, record, live)
      await copyLate(live, step, topic)
      await deleteRetracted(live, step.store, topic)
      // Its loader may have read beyond the live one, which continues behind it.
      const deadLetters = record.helpers.parked_message
      if (deadLetters !== undefined) await store.do(copyDeadLetters, deadLetters)
    }
    if (what === 'back' && topic !== undefined) {
      const names = live.pointers.names('reads', ownersOf(context.projections))
      await copyLate(live, { ...stepContextOf(context, record, live), store: store.with({ names }) }, topic)
    }
    await check()
    const readsChanged = live.pointers.readsChanged + 1
    await store.do(
      storePointers,
      live.pointers.version + 1,
      owners.map((owner) => {
        const each = live.pointers.of(owner)
        if (what === 'back') return { ...each, writes: each.reads }
        // Until then answers find tables that only the new statements make at their first generation.
        const read = what === 'reads' ? { tables: owner.tables, reads: goal(owner), readsChanged } : {}
        return { ...each, writes: goal(owner), ...read }
      })
    )
    // Under the same lock: another process that continues this swap would move `writes` again in between.
    if (what === 'back') {
      const state = record.state === 'swapping' ? 'filled' : 'swapped'
      await storeRebuild(store, record, { state, replaces: null }, 'recovery')
    }
    return what
  })
}

type Move = 'writes' | 'reads' | 'back'

/** Waits until passes have consumed everything that answers may have shown. Returns what has not, when the time is over. */
async function untilCaughtUp(context: RebuildContext, record: RebuildRecord): Promise<string | undefined> {
  const { store, projections, runner, signal } = context
  const begunAt = performance.now()
  const unit = unitOf(record)
  const written = store.with({ names: new Map([...(await liveOf(context)).names, ...waitingNames(record)]) })
  const read = (await store.do(readPointers)).names('reads', ownersOf([...projections, ...unit]))
  // Passes with the former pointer end below these heads: they read the log's heads before the pointer.
  const heads = Checkpoints.of(await store.do(readCheckpoints), read)
  for (;;) {
    signal.throwIfAborted()
    runner.wakeForLate()
    const reached = await Checkpoints.read(written)
    let behind: string | undefined
    for (const { name, from } of unit) {
      const own = projectionCheckpoint(name)
      const place = heads
        .of(loadCheckpoint(from.name))
        .find(({ epoch, partition, next }) => reached.next(own, epoch, partition) < next)
      if (place !== undefined)
        behind = `projection ${name} has not reached offset ${place.next} of ${from.name}, partition ${place.partition},`
      else if ((await written.do(readPending, own, [from.name])).length > 0)
        behind = `projection ${name} has not consumed the late events of ${from.name}`
      if (behind !== undefined) break
    }
    if (behind === undefined || performance.now() - begunAt > context.catchUpMs) return behind
    await pause(LOOK_MS, signal)
  }
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

/** Throws a {@link RebuildRefused} while another swap moves pointers of the same projections. */
function requireNoOtherSwap({ id, unit }: RebuildRecord, records: readonly RebuildRecord[]): void {
  const other = records.find(
    (each) => each.id !== id && isInterrupted(each) && each.unit.some((name) => unit.includes(name))
  )
  if (other === undefined) return
  throw new RebuildRefused(
    `Rebuild ${other.id} of ${other.projection} is ${other.state} and has some of the same projections. Repeat it when that has ended.`
  )
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
    // Several processes may complete a swap: one that is late finds what was swapped in since.
    if (record.id >= swapped.id || record.state !== 'swapped') continue
    if (!record.unit.some((name) => swapped.unit.includes(name))) continue
    await storeRebuild(store, record, { state: 'dropped', reason: `rebuild ${swapped.id} was swapped in` })
  }
}

/** Everything of a rebuild that answers do not read, copies to compare with among it. */
export function tablesToDrop({ id, tables, helpers }: RebuildRecord): string[] {
  const filled = Object.keys(tables).map((table) => generationName(table, id))
  return [...Object.values(tables), ...filled.map(copyName), ...Object.values(helpers)]
}
