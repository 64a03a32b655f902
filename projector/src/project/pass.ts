import { loadCheckpoint, projectionCheckpoint } from '@gamenet/schemas'
import { LateBatches, readLateRange } from '../dead-letters/late-batches.js'
import type { Folding } from '../folding/folding.js'
import type { Current, Generations } from '../generations/generations.js'
import type { Metrics } from '../load/projector-metrics.js'
import { type Checkpoint, Checkpoints, readCheckpoints, storeCheckpoints } from '../store/checkpoint.js'
import type { Pointers } from '../store/generation.js'
import type { Store } from '../store/operation.js'
import type { Projection } from '../store/projection.js'
import type { Range } from '../store/range.js'
import { readTouched, type Touched } from '../store/step.js'
import type { DataChanges } from './data-changes.js'
import { ALL_TOPICS, type OwnTopics } from './division.js'
import type { Failures } from './failures.js'
import { hasConsumedAll, lagOf, nextRange, turnsOf } from './plan.js'
import { hasOlderEpoch, runStep } from './run-step.js'

/** Interval of checks for late batches without a notification: another process may have stored one. */
const LATE_LOOK_MS = 10_000

export type PassNeeds = {
  readonly store: Store
  /** The projections and the generations that they write, read in each pass; a failure is retried. */
  readonly generations: Pick<Generations, 'current'>
  readonly folding: Folding
  readonly metrics: Metrics
  /** Called after each change is stored, so that readers in this process read it at once. */
  readonly onChange: () => void
  /** Called with the pointers of each pass. */
  readonly onPointers?: (pointers: Pointers) => void
  /** True if other processes work on the same tables. */
  readonly isShared: boolean
}

/** A step with stored rows and a pending announcement, over the next range or over a batch of late events. */
type Step = {
  readonly projection: Projection
  readonly range: Range
  readonly touched: Touched
  readonly lateBatch?: string
}

/**
 * One round over all projections that have something to do. Order per step: rows → `data_change` → checkpoint. A crash
 * in between repeats the step, which writes the same rows and notifies readers once more. Steps of one turn share the
 * two small inserts, because each insert costs about 10 ms whatever its size: a scrape that touches eight projections
 * is readable in 0.1 s instead of 0.4. A failed projection is retried separately; the others continue.
 */
export class Pass {
  readonly #needs: PassNeeds
  readonly #failures: Failures
  readonly #changes: DataChanges
  readonly #signal: AbortSignal
  readonly #late = new LateBatches()
  #lateLookedAt = Number.NEGATIVE_INFINITY
  #checkpoints: Checkpoints | undefined
  #current: Current | undefined
  #own = ALL_TOPICS

  constructor(needs: PassNeeds, failures: Failures, changes: DataChanges, signal: AbortSignal) {
    this.#needs = needs
    this.#failures = failures
    this.#changes = changes
    this.#signal = signal
  }

  /** The checkpoints that the last pass read and reached, including the loader's; undefined before the first pass. */
  get checkpoints(): Checkpoints | undefined {
    return this.#checkpoints
  }

  /** As of the last pass. */
  get current(): Current | undefined {
    return this.#current
  }

  /** Whether the last pass left a projection to another projector. */
  isElsewhere(projection: string): boolean {
    return (
      this.#current?.projections.some(({ name, from }) => name === projection && !this.#own.has(from.name)) === true
    )
  }

  /** Lets the next pass look for late batches. */
  lookForLate(): void {
    this.#lateLookedAt = Number.NEGATIVE_INFINITY
  }

  /**
   * Runs a step of every projection of this process's topics, or of the named ones.
   * @param check rejects if exclusive work may have run since the pass began
   * @param only by default, all topics and all projections
   * @returns whether some have not caught up
   */
  async run(
    check: () => Promise<void>,
    { own = ALL_TOPICS, names }: { readonly own?: OwnTopics; readonly names?: ReadonlySet<string> }
  ): Promise<boolean> {
    this.#own = own
    const { stored, current } = await this.#read()
    const store = this.#needs.store.with({ names: current.names })
    const ownProjections = current.projections.filter(({ from }) => own.has(from.name))
    const projections = ownProjections.filter(({ name }) => names === undefined || names.has(name))
    const checkpoints = Checkpoints.of(stored, current.names)
    const touched = new Map<string, Promise<Touched>>()
    let hasMore = false
    for (const turn of turnsOf(projections, checkpoints)) {
      const steps: Step[] = []
      for (const projection of turn) {
        if (this.#signal.aborted) return false
        const { range, isFull } = nextRange(projection, checkpoints)
        if (range.length === 0 || !this.#failures.isDue(projection.name)) continue
        const isLate = hasOlderEpoch(range, checkpoints.of(loadCheckpoint(projection.from.name)))
        const step = await this.#step(store, projection, { range, isLate }, touched)
        if (step === undefined) continue
        for (const each of range) checkpoints.advance({ name: projectionCheckpoint(projection.name), ...each })
        steps.push(step)
        hasMore ||= isFull
      }
      await this.#announce(store, steps, check)
    }
    const hasMoreLate = await this.#runLate(store, ownProjections, check)
    this.#checkpoints = readableOf(current, stored, checkpoints)
    const { projectionLag, ownProjections: isOwn } = this.#needs.metrics
    for (const each of [...current.idle.keys(), ...current.projections]) {
      projectionLag.set({ projection: each.name }, lagOf(each, checkpoints))
      isOwn.set({ projection: each.name }, own.has(each.from.name) ? 1 : 0)
    }
    // Another process may have completed what failed here, or runs it now.
    for (const each of current.projections)
      if (this.#failures.reasonOf(each.name) !== undefined)
        if (!own.has(each.from.name) || this.#hasNothingToDo(each, checkpoints)) this.#failures.succeeded(each.name)
    return hasMore || hasMoreLate
  }

  /**
   * Reads the state for a pass: checkpoints and late batches before the pointers. So a pass that still writes a former
   * generation consumes nothing beyond the heads that a swap reads after it has moved the pointer, and then waits for.
   */
  async #read(): Promise<{ readonly stored: readonly Checkpoint[]; readonly current: Current }> {
    const { store, generations, onPointers } = this.#needs
    for (;;) {
      const current = this.#current ?? (await generations.current())
      const stored = await store.do(readCheckpoints)
      await this.#refreshLate(current)
      this.#current = await generations.current()
      onPointers?.(this.#current.pointers)
      if (this.#current.pointers.version === current.pointers.version) return { stored, current: this.#current }
      this.#late.clear()
      this.lookForLate()
    }
  }

  async #refreshLate({ projections, names }: Current): Promise<void> {
    if (performance.now() - this.#lateLookedAt < LATE_LOOK_MS) return
    // Set before the read, because another batch may be announced during it; after a failure the next pass reads again.
    this.#lateLookedAt = performance.now()
    await this.#late.refresh(this.#needs.store.with({ names }), projections).catch((error: unknown) => {
      this.lookForLate()
      throw error
    })
  }

  /** Consumes the next late batch of every projection; true if there may be more. */
  async #runLate(store: Store, projections: readonly Projection[], check: () => Promise<void>): Promise<boolean> {
    const touched = new Map<string, Promise<Touched>>()
    const ranges = new Map<string, Range>()
    const computed = new Map<string, string>()
    const steps: Step[] = []
    for (const projection of projections) {
      if (this.#signal.aborted) return false
      const lateBatch = this.#late.next(projection, computed)
      if (lateBatch === undefined || !this.#failures.isDue(projection.name)) continue
      const range = ranges.get(lateBatch) ?? (await readLateRange(store, lateBatch))
      ranges.set(lateBatch, range)
      const step = await this.#step(store, projection, { range, isLate: true }, touched)
      if (step === undefined) continue
      computed.set(projection.name, lateBatch)
      steps.push({ ...step, lateBatch })
    }
    await this.#announce(store, steps, check)
    return steps.length > 0
  }

  #hasNothingToDo(projection: Projection, checkpoints: Checkpoints): boolean {
    return hasConsumedAll(projection, checkpoints) && this.#late.next(projection, new Map()) === undefined
  }

  /** Computes and stores the rows of a range. Undefined if it failed. */
  async #step(
    store: Store,
    projection: Projection,
    { range, isLate }: { readonly range: Range; readonly isLate: boolean },
    cache: Map<string, Promise<Touched>>
  ): Promise<Step | undefined> {
    const { folding, metrics, isShared } = this.#needs
    await this.#own.check()
    try {
      const key = JSON.stringify([projection.from.name, projection.touches.key, range])
      const read = cache.get(key) ?? store.do(readTouched, projection, range)
      cache.set(key, read)
      const touched = await read
      if (touched.events > 0) {
        const done = metrics.projectionStepSeconds.startTimer({ projection: projection.name })
        await runStep({ store, folding, signal: this.#signal, isShared }, projection, { range, isLate })
        done()
      }
      return { projection, range, touched }
    } catch (error) {
      this.#failures.failed(projection.name, error, this.#signal.aborted)
      return undefined
    }
  }

  /** Announces steps: first their changes, then their checkpoints. */
  async #announce(store: Store, steps: readonly Step[], check: () => Promise<void>): Promise<void> {
    if (steps.length === 0) return
    await this.#own.check()
    const changes = steps.filter(({ touched }) => touched.events > 0)
    try {
      if (changes.length > 0) await this.#changes.announce(changes)
      // Rows that exclusive work of another process may have deleted meanwhile are computed again.
      await check()
      const reached = steps
        .filter(({ lateBatch }) => lateBatch === undefined)
        .flatMap(({ projection, range }) =>
          range.map((each) => ({ name: projectionCheckpoint(projection.name), ...each }))
        )
      if (reached.length > 0) await store.do(storeCheckpoints, reached)
      await this.#late.store(
        store,
        steps.flatMap(({ projection, lateBatch }) =>
          lateBatch === undefined ? [] : [{ projection: projection.name, id: lateBatch }]
        )
      )
    } catch (error) {
      for (const { projection } of steps) this.#failures.failed(projection.name, error, this.#signal.aborted)
      throw error
    }
    for (const { projection } of steps) this.#failures.succeeded(projection.name)
    if (changes.length > 0) this.#needs.onChange()
  }
}

/** Returns the checkpoints of the generations that answers read: during a swap, passes already write another one. */
function readableOf({ pointers, owners }: Current, stored: readonly Checkpoint[], written: Checkpoints): Checkpoints {
  const isSwapping = pointers.all().some(({ writes, reads }) => writes !== reads)
  return isSwapping ? Checkpoints.of(stored, pointers.names('reads', owners)) : written
}
