import { generationName, loadCheckpoint, pause, projectionCheckpoint } from '@gamenet/schemas'
import { ownersOf } from '../generations/generations.js'
import { Checkpoints, readCheckpoints } from '../store/checkpoint.js'
import { copyDeadLetters } from '../store/dead-letter.js'
import { type Pointers, readPointers, storePointers } from '../store/generation.js'
import { readPending } from '../store/late-batch.js'
import { replaceReadViews } from '../store/read-view.js'
import { catchUpLate, copyLate } from './catch-up-late.js'
import {
  liveOf,
  type RebuildContext,
  reloadedTopic,
  requireOwnStatements,
  requireSoundSources,
  stepContextOf,
  unitOf,
  waitingNames,
  waitingTables
} from './context.js'
import { RebuildRefused, StepsHeld, type SwapReport } from './contract.js'
import { catchUp } from './fill.js'
import { requireNoImportUndo } from './find-rebuild.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { copyName } from './rebuild-tables.js'
import { deleteRetracted, reload, requireAllEvents } from './reload.js'

/*
 * A swap makes two moves. First `writes`: live steps write the filled generation from now on, and the one that answers
 * read no longer changes. When ordinary passes have caught up, `reads`: new answers read the generation that live steps
 * write. No answer waits, and each is of one generation, because it reads the pointers once. New data is delayed by the
 * time between the moves, about one pass.
 */

/** Maximum number of events that are left to ordinary passes. */
const NEAR_EVENTS = 10_000
const APPROACHES_MAX = 20
/** Time limit for ordinary passes to consume the rest; they need about one pass. */
export const CATCH_UP_MS = 60_000
const LOOK_MS = 25

/** Consumes the events of the meantime, while live steps continue, until at most {@link NEAR_EVENTS} are left. */
export async function approach(context: RebuildContext, record: RebuildRecord): Promise<number> {
  let sum = 0
  for (let n = 0; n < APPROACHES_MAX; n += 1) {
    const taken = await catchUpOnce(context, record)
    sum += taken
    if (taken <= NEAR_EVENTS) break
  }
  return sum
}

/**
 * Consumes up to the present position of the live tables; called between passes, both have the same position
 * afterwards.
 */
export async function catchUpOnce(context: RebuildContext, record: RebuildRecord): Promise<number> {
  const live = await liveOf(context)
  const checkpoints = await Checkpoints.read(live.store)
  const topic = reloadedTopic(record)
  if (topic !== undefined)
    await reload(context, record, topic, checkpoints.of(loadCheckpoint(topic.name)), {
      shouldContinue: async () => !context.signal.aborted,
      onStep: () => {}
    })
  const [step, unit] = [stepContextOf(context, record, live), unitOf(context, record)]
  const taken = await catchUp({ step, unit, sizes: context.sizes }, checkpoints)
  return taken + (await catchUpLate(live, step, { unit, record }))
}

/**
 * Swaps a filled rebuild in, or rolls a swapped one back: answers read its generations, and the former ones are kept.
 * Order: the intent → `writes` → caught up → `reads` → `data_change` → the result; {@link completeSwap} continues after
 * a crash in between.
 * @param from the pointers at which the rebuild's tables were cloned: they must not have moved since
 * @returns undefined when another process has changed the rebuild's state meanwhile; then nothing was done
 */
export async function swap(
  context: RebuildContext,
  record: RebuildRecord,
  state: 'swapping' | 'rolling-back',
  from?: Pointers
): Promise<SwapReport | undefined> {
  const { store } = context
  await requireOwnStatements(context, record)
  await requireSound(context, record, state)
  const caughtUp = await approach(context, record)
  if (record.isAutomatic && state === 'swapping') await requireAllEvents(context, record)
  const intended = await context.steps.exclusive(async (check) => {
    // A second swap of the same rebuild would undo the first.
    const records = await readRebuilds(store)
    if (records.find(({ id }) => id === record.id)?.state !== record.state) return undefined
    requireNoOtherSwap(record, records)
    if (state === 'rolling-back') await requireNoImportUndo(context, record)
    await resetVerifications(context, record, records)
    const pointers = await store.do(readPointers)
    if (from !== undefined) requireUnmoved(record, from, pointers)
    await check()
    const replaces = record.waiting.map((each) => {
      const { owner, tables, reads } = pointers.of(each)
      return { owner, tables: [...tables], generation: reads }
    })
    const by = record.key === null ? 'operator' : 'key'
    return await storeRebuild(store, record, { state, reason: null, replaces }, by)
  })
  if (intended === undefined) return undefined
  const lateMs = await completeSwap(context, intended)
  return lateMs === undefined ? undefined : { id: record.id, caughtUp, lateMs }
}

/** Throws {@link StepsHeld} if the pointers of a rebuild's owners have moved, or are being moved. */
export function requireUnmoved({ id, waiting }: RebuildRecord, from: Pointers, now: Pointers): void {
  const isUnmoved = waiting.every((each) => {
    const { reads, writes } = now.of(each)
    return reads === writes && reads === from.of(each).reads
  })
  if (!isUnmoved) throw new StepsHeld(`Other tables are swapped in, so rebuild ${id} begins again with these.`)
}

/** Throws a {@link RebuildRefused} if tables that answers would read are damaged, or computed from such ones. */
async function requireSound(
  context: RebuildContext,
  record: RebuildRecord,
  state: 'swapping' | 'rolling-back'
): Promise<void> {
  const { id, projection } = record
  const damaged = Object.values(waitingTables(record)).find((name) => context.damaged.has(name))
  if (damaged !== undefined)
    throw new RebuildRefused(
      `The table ${damaged} is damaged, so the tables of rebuild ${id} are not swapped in. Drop them: gamenet ` +
        `rebuild ${state === 'swapping' ? 'cancel' : 'drop'} ${projection}.`
    )
  if (state === 'swapping') await requireSoundSources(context, unitOf(context, record), reloadedTopic(record))
}

/** Whether a rebuild's swap has an intent and no result yet. */
export const isInterrupted = ({ state }: RebuildRecord): boolean => state === 'swapping' || state === 'rolling-back'

/**
 * Completes a swap whose intent is stored, whichever step it had reached; several processes may do so at once. Throws a
 * {@link RebuildRefused} when passes do not catch up in time: then nothing is swapped.
 * @returns the time without new data in answers, in ms; undefined when another process has set it back
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
        `Rebuild ${record.id} was not swapped: ${reason} within ${context.catchUpMs / 1000} s. See gamenet ` +
          'status, then repeat it.'
      )
  }
  const lateMs = performance.now() - begunAt
  if (moved === undefined) return (await isDone(context, record)) ? lateMs : undefined
  await runner.announceChanged(record.unit, record.key ?? undefined)
  const { replaces } = record
  if (replaces === null)
    throw new Error(`rebuild ${record.id} is ${record.state} but has no record of what it replaces`)
  // Exclusive: otherwise a rollback to what is dropped here could begin.
  await context.steps.exclusive(async () => {
    await store.do(replaceReadViews, { all: false })
    const state = resultOf(record)
    await storeRebuild(store, record, { state, waiting: replaces, replaces: null })
    if (state === 'swapped') await dropReplaced(context, record, replaces)
  })
  return lateMs
}

/**
 * Whether another process has completed this swap: the one that filled the rebuild looks for interrupted ones every 2
 * s.
 */
async function isDone({ store }: RebuildContext, record: RebuildRecord): Promise<boolean> {
  return (await readRebuilds(store)).some(({ id, state }) => id === record.id && state === resultOf(record))
}

function resultOf({ state }: RebuildRecord): 'swapped' | 'rolled-back' {
  return state === 'swapping' ? 'swapped' : 'rolled-back'
}

/**
 * Moves the pointers of a rebuild's owners, all at once: `writes` to the rebuild's generations, `reads` to the same, or
 * `writes` back to what answers read.
 * @returns `reads` if answers read the rebuild's generations; undefined when another process has changed the rebuild's
 * state
 */
async function move(context: RebuildContext, record: RebuildRecord, what: Move): Promise<Move | undefined> {
  const { store } = context
  return await context.steps.exclusive(async (check) => {
    const newest = (await readRebuilds(store)).find(({ id }) => id === record.id)
    if (newest?.version !== record.version) return undefined
    const live = await liveOf(context)
    const moved = record.waiting.map((each) => ({ ...each, pointer: live.pointers.of(each) }))
    if (moved.every(({ pointer, generation }) => pointer.reads === generation)) return 'reads'
    const isWritten = moved.every(({ pointer, generation }) => pointer.writes === generation)
    if (what === 'writes' && isWritten) return what
    // Another process has moved `writes` back: passes write the former generation again, perhaps beyond what this
    // process has seen.
    if (what === 'reads' && !isWritten) return undefined
    const topic = reloadedTopic(record)
    if (what === 'writes' && topic !== undefined) {
      // Rows without a message in the log, and rows whose message has expired. No dead letter is retried meanwhile.
      const step = stepContextOf(context, record, live)
      await copyLate(live, step, topic)
      await deleteRetracted(live, step.store, topic)
      // The rebuild's loader may have read further than the live one and found dead letters there.
      const deadLetters = record.helpers.dead_letter
      if (deadLetters !== undefined) await store.do(copyDeadLetters, deadLetters)
    }
    if (what === 'back' && topic !== undefined) {
      const names = live.pointers.names('reads', ownersOf(context.projections))
      await copyLate(live, { ...stepContextOf(context, record, live), store: store.with({ names }) }, topic)
    }
    await check()
    const changed = live.pointers.readsChanged + 1
    await store.do(
      storePointers,
      live.pointers.version + 1,
      moved.map(({ pointer, tables, generation }) => {
        if (what === 'back') return { ...pointer, writes: pointer.reads }
        // Before `reads` moves, answers read tables that only the new version has at generation 0.
        const readsChanged = record.key === null ? changed : pointer.readsChanged
        const read = what === 'reads' ? { tables, reads: generation, readsChanged } : {}
        return { ...pointer, writes: generation, ...read }
      })
    )
    // Under the same lock: another process that completes this swap could move `writes` again in between.
    if (what === 'back') {
      const state = record.state !== 'swapping' ? 'swapped' : record.key === null ? 'filled' : 'filling'
      await storeRebuild(store, record, { state, replaces: null }, 'recovery')
    }
    return what
  })
}

type Move = 'writes' | 'reads' | 'back'

/**
 * Waits until passes have consumed everything that answers may have shown. Returns what is behind when the time limit
 * has passed.
 */
async function untilCaughtUp(context: RebuildContext, record: RebuildRecord): Promise<string | undefined> {
  const { store, projections, runner, signal } = context
  const begunAt = performance.now()
  const unit = unitOf(context, record)
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
      const topic = from.name
      const own = projectionCheckpoint(name)
      const place = heads
        .of(loadCheckpoint(topic))
        .find(({ epoch, partition, next }) => reached.next(own, epoch, partition) < next)
      if (place !== undefined)
        behind = `projection ${name} has not reached offset ${place.next} of ${topic}, partition ${place.partition},`
      else if ((await written.do(readPending, own, [topic])).length > 0)
        behind = `projection ${name} has not consumed the late events of ${topic}`
      if (behind !== undefined) break
    }
    if (behind === undefined || performance.now() - begunAt > context.catchUpMs) return behind
    await pause(LOOK_MS, signal)
  }
}

/** Runs work while nothing writes to the live tables that a rebuild fills a generation of. */
export async function atRest<Result>(
  { runner, loader }: RebuildContext,
  record: RebuildRecord,
  work: (check: () => Promise<void>) => Promise<Result>
): Promise<Result> {
  const betweenPasses = () => runner.betweenPasses(work)
  return reloadedTopic(record) === undefined ? await betweenPasses() : await loader.whilePaused(betweenPasses)
}

/** Throws {@link StepsHeld} while another swap moves pointers of the same projections. */
function requireNoOtherSwap({ id, unit }: RebuildRecord, records: readonly RebuildRecord[]): void {
  const other = records.find(
    (each) => each.id !== id && isInterrupted(each) && each.unit.some((name) => unit.includes(name))
  )
  if (other === undefined) return
  throw new StepsHeld(
    `Rebuild ${other.id} of ${other.projection} is ${other.state} and has some of the same projections. Repeat it ` +
      'when that has ended.'
  )
}

/** Discards verifications against tables that no longer serve: these rebuilds must be verified again before a swap. */
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

/** Marks the generations that earlier swaps replaced as dropped: a rollback returns to the newest replaced one only. */
async function dropReplaced(
  { store }: RebuildContext,
  swapped: RebuildRecord,
  replaced: NonNullable<RebuildRecord['replaces']>
): Promise<void> {
  for (const record of await readRebuilds(store)) {
    // Several processes may complete a swap; a slow one also sees rebuilds that were swapped in later. A rebuild of one
    // key may have begun after this one, and been swapped in before it.
    const isEarlier = record.id < swapped.id || replaced.some(({ generation }) => generation === record.id)
    if (!isEarlier || record.id === swapped.id || record.state !== 'swapped') continue
    if (!record.unit.some((name) => swapped.unit.includes(name))) continue
    await storeRebuild(store, record, { state: 'dropped', reason: `rebuild ${swapped.id} was swapped in` })
  }
}

/** All tables of a rebuild that answers do not read, including the copies for its comparison. */
export function tablesToDrop(record: RebuildRecord): string[] {
  const waiting = waitingTables(record)
  const filled = Object.keys(waiting).map((table) => generationName(table, record.id))
  return [...Object.values(waiting), ...filled.map(copyName), ...Object.values(record.helpers)]
}
