import { generationName, projectionCheckpoint, rangeBetween } from '@gamenet/schemas'
import type { StepContext } from '../folding/step.js'
import { copiesOf } from '../folds/folds.js'
import { asStep, hasOlderEpoch, runStep } from '../project/run-step.js'
import { type Checkpoint, Checkpoints, storeCheckpoints } from '../store/checkpoint.js'
import { type Projection, sourcesOf } from '../store/projection.js'
import { halvesOf, lengthOf } from '../store/range.js'
import { copyRows } from '../store/step.js'
import { StepsHeld } from './contract.js'
import type { RebuildRecord } from './rebuild-record.js'
import { type Cuts, sliceAt } from './slices.js'

/** Target duration of a step, in ms: long enough to be efficient, short enough to pause. */
const STEP_MS = 5000
/** A failed step is repeated in this many parts: it may have needed too much memory. */
const STEP_PARTS = 4
/** Target duration of a step that reads much of another table each time, in ms. A pause waits for its end. */
const LONG_STEP_MS = 30_000
const SLICES_MAX = 4096
/**
 * A small fold has about this many slices, of at least this many events: the first ones show the time of the others.
 */
const SMALL_SLICES = 8
const SMALL_SLICE_EVENTS = 20_000

/** Numbers of events per step. */
export type StepSizes = {
  /** Least and most of a step of the fill. */
  readonly least: number
  readonly most: number
  /** Of a slice of a fold's keys: about five chunks, so that reading, folding and storing overlap. */
  readonly sliceOfFold: number
  /** Of a slice of the keys of a statement. */
  readonly sliceOfStatement: number
  /** Most of a step of catching up. */
  readonly catchUp: number
}

export const STEP_SIZES: StepSizes = {
  least: 500_000,
  most: 8_000_000,
  sliceOfFold: 500_000,
  sliceOfStatement: 1_000_000,
  catchUp: 500_000
}

/** Least events of a step at a low rate. */
const RATE_EVENTS_LEAST = 1000

/** Returns the sizes of steps at a rate in events per second: small ones, so that it is held from the beginning. */
export function sizesAt(sizes: StepSizes, rate: number | null): StepSizes {
  if (rate === null) return sizes
  const most = Math.max(RATE_EVENTS_LEAST, Math.round((rate * STEP_MS) / 1000))
  const { least, sliceOfFold, sliceOfStatement } = sizes
  return {
    ...sizes,
    least: Math.min(least, most),
    most: Math.min(sizes.most, most),
    sliceOfFold: Math.min(sliceOfFold, most),
    sliceOfStatement: Math.min(sliceOfStatement, most)
  }
}

/** Returns the number of events of a slice of the keys of a projection with this many events. */
export function sliceEvents({ form }: Projection, events: number, sizes: StepSizes): number {
  const few = Math.max(SMALL_SLICE_EVENTS, events / SMALL_SLICES)
  const wanted = form === 'fold' ? Math.min(sizes.sliceOfFold, few) : sizes.sliceOfStatement
  return Math.ceil(Math.max(wanted, events / SLICES_MAX))
}

/** Name of the checkpoint that counts the completed slices of a projection. */
function slicesCheckpoint({ id }: RebuildRecord, projection: string): string {
  return generationName(`slices:${projection}`, id)
}

/** Runs a wait. */
export type Held = (wait: () => Promise<void>) => Promise<void>

export type Filling = {
  /** The tables under the names of the rebuild, its checkpoints among them. */
  readonly step: StepContext
  readonly unit: readonly Projection[]
  readonly record: RebuildRecord
  readonly sizes: () => StepSizes
  /** Called before each step; false pauses the fill. Waits for the rate inside `held`, which may stop other work. */
  readonly shouldContinue: (held?: Held) => Promise<boolean>
  /** Called after each step. */
  readonly onStep: (step: { readonly projection: string; readonly events: number }) => void
}

/**
 * Fills the unit's tables in bounded steps: ranges of the log, or slices of keys, each key once and whole. A projection
 * begins when those whose tables it reads are filled: the engine fills one while the thread of folds computes another.
 * Every step may be repeated; a crash costs one step of each projection that is being filled.
 * @returns false if `shouldContinue` paused it
 */
export async function fill(filling: Filling): Promise<boolean> {
  const { unit, record } = filling
  let hasFailed = false
  const each: Filling = { ...filling, shouldContinue: async () => !hasFailed && (await filling.shouldContinue()) }
  const fills = new Map<Projection, Promise<boolean>>()
  const fillOne = async (projection: Projection): Promise<boolean> => {
    const sources = sourcesOf(unit, projection).map((source) => fills.get(source))
    if ((await Promise.all(sources)).includes(false)) return false
    const cuts = record.cuts[projection.name]
    return await (cuts === undefined ? fillStretches(each, projection) : fillSlices(each, projection, cuts))
  }
  for (const projection of unit) {
    const filled = fillOne(projection)
    filled.catch(() => {
      hasFailed = true
    })
    fills.set(projection, filled)
  }
  // Waits for all, also if one fails.
  await Promise.allSettled(fills.values())
  return !(await Promise.all(fills.values())).includes(false)
}

async function fillStretches(
  { step, record, sizes, shouldContinue, onStep }: Filling,
  projection: Projection
): Promise<boolean> {
  const name = projectionCheckpoint(projection.name)
  const target = record.target[projection.from.name] ?? []
  const checkpoints = await Checkpoints.read(step.store)
  const within = (events: number) => Math.min(sizes().most, Math.max(sizes().least, Math.round(events)))
  // Every step of a projection that reads another table reads much of it again, so fewer steps are faster.
  const isReadAgain = projection.after !== undefined
  let stepEvents = isReadAgain ? sizes().most : sizes().least
  for (;;) {
    if (!(await shouldContinue())) return false
    const range = rangeBetween((at) => checkpoints.next(name, at.epoch, at.partition), target, within(stepEvents))
    if (range.length === 0) return true
    const begun = performance.now()
    try {
      const ranges = isReadAgain ? [range] : halvesOf(range)
      // Waits for both, also if one fails.
      const ended = await Promise.allSettled(
        ranges.map((each) => runStep(step, projection, { range: each, isLate: false }))
      )
      for (const each of ended) if (each.status === 'rejected') throw each.reason
    } catch (error) {
      if (lengthOf(range) <= sizes().least || step.signal.aborted || error instanceof StepsHeld) throw error
      stepEvents = within(lengthOf(range) / STEP_PARTS)
      continue
    }
    await advance(
      step,
      checkpoints,
      range.map((each) => ({ name, ...each }))
    )
    const ms = performance.now() - begun
    onStep({ projection: projection.name, events: lengthOf(range) })
    const aimMs = isReadAgain ? LONG_STEP_MS : STEP_MS
    stepEvents = within(Math.min(stepEvents * (isReadAgain ? 1 : 4), (stepEvents * aimMs) / Math.max(ms, 1)))
  }
}

/**
 * Fills two slices at once: while the rest of one is folded and stored, the next one is read. A slice counts as
 * completed after all before it, so a crash costs two. At the end, the rows that a fold stores in two orders are
 * copied, all in one statement.
 */
async function fillSlices(
  { step, record, shouldContinue, onStep }: Filling,
  projection: Projection,
  cuts: Cuts
): Promise<boolean> {
  const target = record.target[projection.from.name] ?? []
  const checkpoints = await Checkpoints.read(step.store)
  const name = slicesCheckpoint(record, projection.name)
  const total = record.events[projection.name] ?? 0
  const range = rangeBetween(() => 0, target, Infinity)
  const of = range.length === 0 ? 0 : cuts.length + 1
  const fillSlice = async (n: number, before: Promise<void>): Promise<void> => {
    const filled = runStep(step, projection, { range, isLate: false, slice: sliceAt(cuts, n) })
    // Waits for both, also if one fails.
    for (const each of await Promise.allSettled([before, filled])) if (each.status === 'rejected') throw each.reason
    await advance(step, checkpoints, [{ name, epoch: 0, partition: 0, next: n + 1 }])
    onStep({ projection: projection.name, events: Math.round(total / of) })
  }
  let next = checkpoints.next(name, 0, 0)
  let [before, last] = [Promise.resolve(), Promise.resolve()]
  let hasFailed = false
  const noteFailure = () => {
    hasFailed = true
  }
  try {
    for (; next < of; next += 1) {
      await before.catch(() => undefined)
      if (hasFailed || !(await shouldContinue())) break
      ;[before, last] = [last, fillSlice(next, last)]
      last.catch(noteFailure)
    }
  } finally {
    await last.catch(() => undefined)
  }
  await last
  if (next < of) return false
  if (projection.form === 'fold') await asStep(step, () => step.store.do(copyRows, projection, copiesOf(projection)))
  await advance(
    step,
    checkpoints,
    target.map((each) => ({ name: projectionCheckpoint(projection.name), ...each }))
  )
  return true
}

async function advance(step: StepContext, checkpoints: Checkpoints, reached: readonly Checkpoint[]): Promise<void> {
  if (reached.length === 0) return
  await step.store.do(storeCheckpoints, reached)
  for (const each of reached) checkpoints.advance(each)
}

/** Returns the consumed events of the fill, by projection and, for a reload, by loader. */
export function doneByProjection(
  record: RebuildRecord,
  unit: readonly Projection[],
  checkpoints: Checkpoints
): Map<string, number> {
  const reloaded = Object.keys(record.events).filter((name) => !record.unit.includes(name))
  return new Map([
    ...reloaded.map((name) => [name, loadedOf(record, name, checkpoints)] as const),
    ...unit.map((projection) => {
      const { name, from } = projection
      const own = projectionCheckpoint(name)
      const target = record.target[from.name] ?? []
      const total = record.events[name] ?? 0
      const left = lengthOf(rangeBetween((at) => checkpoints.next(own, at.epoch, at.partition), target, Infinity))
      const cuts = record.cuts[name]
      if (cuts === undefined || left === 0) return [name, Math.max(0, total - left)] as const
      const slices = checkpoints.next(slicesCheckpoint(record, name), 0, 0)
      return [name, Math.round((total * slices) / (cuts.length + 1))] as const
    })
  ])
}

/** Returns the number of events that are loaded into the rebuild's event table. */
function loadedOf(record: RebuildRecord, name: string, checkpoints: Checkpoints): number {
  const target = Object.values(record.target)[0] ?? []
  return target.reduce(
    (sum, { epoch, partition, next }) => sum + Math.min(next, checkpoints.next(name, epoch, partition)),
    0
  )
}

/**
 * Consumes the events that the live tables have consumed, never more: both are at one position afterwards.
 * @returns the number of events
 */
export async function catchUp(
  { step, unit, sizes }: Pick<Filling, 'step' | 'unit'> & { readonly sizes: StepSizes },
  live: Checkpoints
): Promise<number> {
  const checkpoints = await Checkpoints.read(step.store)
  let taken = 0
  for (const projection of unit) {
    const name = projectionCheckpoint(projection.name)
    const loaded = live.of(name)
    for (;;) {
      const range = rangeBetween((at) => checkpoints.next(name, at.epoch, at.partition), loaded, sizes.catchUp)
      if (range.length === 0) break
      step.signal.throwIfAborted()
      await runStep(step, projection, { range, isLate: hasOlderEpoch(range, loaded) })
      await advance(
        step,
        checkpoints,
        range.map((each) => ({ name, ...each }))
      )
      taken += lengthOf(range)
    }
  }
  return taken
}
