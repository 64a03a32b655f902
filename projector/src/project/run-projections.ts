import {
  type Backoff,
  backoffMs,
  DEFAULT_BACKOFF,
  errorMessage,
  loadCheckpoint,
  pause,
  projectionCheckpoint,
  rangeBetween
} from '@gamenet/schemas'
import { LateBatches, readLateRange } from '../dead-letters/late-batches.js'
import type { Folding } from '../folding/folding.js'
import type { Current, Generations, Idle } from '../generations/generations.js'
import { LOCAL_PASS_LOCK, type PassLock } from '../generations/pass-lock.js'
import type { Metrics } from '../load/projector-metrics.js'
import type { Logger } from '../logger.js'
import { type Checkpoint, Checkpoints, readCheckpoints, storeCheckpoints } from '../store/checkpoint.js'
import type { Pointers } from '../store/generation.js'
import type { Store } from '../store/operation.js'
import type { Projection } from '../store/projection.js'
import { lengthOf, type Range } from '../store/range.js'
import { readTouched, type Touched } from '../store/step.js'
import { DataChanges } from './data-changes.js'
import { hasOlderEpoch, runStep } from './run-step.js'

/**
 * Maximum number of events per step, by form: limits its time (about 10 s) and memory; a longer backlog takes several
 * steps.
 */
const STEP_EVENTS_MAX = { sql: 5_000_000, fold: 500_000 }
/** After this many events, completed steps are announced before the next topic's turn. */
const FLUSH_EVENTS = 50_000
/** Interval of reads of checkpoints without a notification: another process may have loaded. */
const POLL_MS = 1000
/** Interval of checks for late batches without a notification: another process may have stored one. */
const LATE_LOOK_MS = 10_000
/**
 * Minimum time between two passes while a backlog is loaded, at least four times the duration of the last pass: fewer,
 * larger steps leave the engine to the loader. A step costs as much for 15,000 events as for ten times as many.
 */
const BUSY_SPACING_MS = 1000
const BUSY_SPACING_PASSES = 4

export type RunnerOptions = {
  readonly store: Store
  /** The projections and the generations that they write, read in each pass; a failure is retried. */
  readonly generations: Pick<Generations, 'current'>
  /** Cross-process lock; set when several projectors run. */
  readonly passLock?: PassLock
  readonly folding: Folding
  readonly metrics: Metrics
  readonly logger: Logger
  /** Called after each change is stored, so that readers in this process read it at once. */
  readonly onChange: () => void
  /** Called after each pass, with or without changes. */
  readonly onPass: () => void
  /** Called with the pointers of each pass. */
  readonly onPointers?: (pointers: Pointers) => void
  /** True while a backlog is loaded. */
  readonly isLoaderBusy: () => boolean
  /** True if other processes work on the same tables. */
  readonly isShared: boolean
  readonly backoff?: Backoff
}

export type ProjectionState = {
  /**
   * `outdated`: an earlier version has filled its tables, or those that it reads; `damaged`: rows of these may be
   * missing. A rebuild replaces them.
   */
  readonly state: 'running' | 'failing' | 'paused' | Idle['state']
  /** Why it does not run, else null. */
  readonly reason: string | null
}

type Failure = { readonly count: number; readonly retryAt: number; readonly reason: string }
/** A step with stored rows and a pending announcement, over the next range or over a batch of late events. */
type Step = {
  readonly projection: Projection
  readonly range: Range
  readonly touched: Touched
  readonly lateBatch?: string
}

/**
 * Runs projections over loaded events. Order per step: rows → `data_change` → checkpoint. A crash in between repeats
 * the step, which writes the same rows and notifies readers once more. Steps of one pass share the two small inserts,
 * because each insert costs about 10 ms whatever its size: a scrape that touches eight projections is readable in 0.1 s
 * instead of 0.4. A failed projection is retried separately with growing delays; the others continue.
 */
export class ProjectionRunner {
  readonly #options: RunnerOptions
  readonly #passes: PassLock
  readonly #failures = new Map<string, Failure>()
  readonly #paused = new Set<string>()
  readonly #stop = new AbortController()
  #checkpoints: Checkpoints | undefined
  #trouble: string | null = null
  #troubles = 0
  #isWoken = false
  #wake: () => void = () => {}
  #running: Promise<void> = Promise.resolve()
  #isInPass = false
  /** Work for which no pass may run. */
  #pendingWork: (() => Promise<void>)[] = []
  readonly #late: LateBatches
  readonly #changes: DataChanges
  #lateLookedAt = Number.NEGATIVE_INFINITY
  /** As of the last pass. */
  #current: Current | undefined

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#passes = options.passLock ?? LOCAL_PASS_LOCK
    this.#late = new LateBatches()
    this.#changes = new DataChanges(options.store, options.isShared)
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Ends after the current statement. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#wake()
    await this.#running
    await this.#runPendingWork()
  }

  /**
   * Runs work while no pass runs in any process, so that nothing else is written to read tables; `check` rejects if
   * that may no longer hold. Rejects when the runner stops before.
   */
  betweenPasses<Result>(work: (check: () => Promise<void>) => Promise<Result>): Promise<Result> {
    if (this.#stop.signal.aborted) return Promise.reject(new Error('The projections were stopped.'))
    return new Promise((resolve, reject) => {
      this.#pendingWork.push(async () => {
        if (this.#stop.signal.aborted) reject(new Error('The projections were stopped.'))
        else await this.#passes.exclusive(work).then(resolve, reject)
      })
      this.wake()
    })
  }

  /** Announces that everything of these projections may have changed. For work between passes. */
  async announceAll(projections: readonly string[]): Promise<void> {
    await this.#changes.announceAll(projections)
    this.#options.onChange()
  }

  /**
   * Runs the next step of projections, also of those that wait for a retry: a pass that failed after its rows left them
   * beyond the checkpoint. A projection that fails again stays where it is. For work between passes, with its `check`.
   */
  async stepOnce(names: ReadonlySet<string>, check: () => Promise<void>): Promise<void> {
    for (const [name, failure] of this.#failures) {
      if (names.has(name)) this.#failures.set(name, { ...failure, retryAt: Number.NEGATIVE_INFINITY })
    }
    this.#lateLookedAt = Number.NEGATIVE_INFINITY
    await this.#passLocked(check, names)
  }

  /** Notifies that events were loaded. */
  wake(): void {
    this.#isWoken = true
    this.#wake()
  }

  /** Notifies that a batch of late events was stored. */
  wakeForLate(): void {
    this.#lateLookedAt = Number.NEGATIVE_INFINITY
    this.wake()
  }

  pause(projection: string): void {
    this.#paused.add(projection)
  }

  resume(projection: string): void {
    this.#paused.delete(projection)
    this.#failures.delete(projection)
    this.wake()
  }

  /** The checkpoints that the last pass read and reached, including the loader's; empty before the first pass. */
  get checkpoints(): Checkpoints {
    return this.#checkpoints ?? new Checkpoints()
  }

  /** True once a pass has read all checkpoints. */
  get hasPassed(): boolean {
    return this.#checkpoints !== undefined
  }

  /** True while a pass runs, which may take long. */
  get isInPass(): boolean {
    return this.#isInPass
  }

  state(projection: string): ProjectionState {
    if (this.#paused.has(projection)) return { state: 'paused', reason: null }
    const [, idle] = [...(this.#current?.idle ?? [])].find(([{ name }]) => name === projection) ?? []
    if (idle !== undefined) return idle
    const reason = this.#failures.get(projection)?.reason ?? this.#trouble
    return { state: reason === null ? 'running' : 'failing', reason }
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#isWoken = false
      await this.#runPendingWork()
      const begunAt = performance.now()
      const waitMs = await this.#passOrWait()
      const passedAt = performance.now()
      this.#options.onPass()
      await this.#sleep(waitMs)
      const spacingMs = Math.max(BUSY_SPACING_MS, BUSY_SPACING_PASSES * (passedAt - begunAt))
      while (this.#options.isLoaderBusy() && performance.now() - passedAt < spacingMs) {
        await pause(BUSY_SPACING_MS / 40, this.#stop.signal)
        // A swap needs a pass over the new tables before they are read.
        if ((await this.#runPendingWork()) || this.#stop.signal.aborted) break
      }
    }
  }

  /** Returns whether there was work. */
  async #runPendingWork(): Promise<boolean> {
    const pending = this.#pendingWork.splice(0)
    for (const work of pending) await work()
    return pending.length > 0
  }

  /** Runs one pass; returns the delay before the next one, in ms. */
  async #passOrWait(): Promise<number> {
    this.#isInPass = true
    try {
      const hasMore = await this.#pass()
      this.#trouble = null
      this.#troubles = 0
      const tried = [...this.#failures].filter(([name]) => !this.#paused.has(name))
      const retries = tried.map(([, { retryAt }]) => retryAt - performance.now())
      return hasMore ? 0 : Math.max(0, Math.min(POLL_MS, ...retries))
    } catch (error) {
      this.#troubles += 1
      this.#trouble = errorMessage(error)
      if (!this.#stop.signal.aborted) this.#options.logger.error({ reason: this.#trouble }, 'projections have stopped')
      await pause(backoffMs(this.#options.backoff ?? DEFAULT_BACKOFF, this.#troubles), this.#stop.signal)
      return 0
    } finally {
      this.#isInPass = false
    }
  }

  async #sleep(ms: number): Promise<void> {
    if (ms === 0 || this.#isWoken || this.#stop.signal.aborted) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      timer = setTimeout(resolve, ms)
    })
    clearTimeout(timer)
  }

  /** Runs a step of every projection, small backlogs first; true if some have not caught up. */
  async #pass(): Promise<boolean> {
    return await this.#passes.shared((check) => this.#passLocked(check))
  }

  async #passLocked(check: () => Promise<void>, names?: ReadonlySet<string>): Promise<boolean> {
    const { stored, current } = await this.#read()
    const store = this.#options.store.with({ names: current.names })
    const projections = current.projections.filter(({ name }) => names === undefined || names.has(name))
    const checkpoints = Checkpoints.of(stored, current.names)
    const touched = new Map<string, Promise<Touched>>()
    const pending = (each: Projection) => lagOf(each, checkpoints)
    const lengths = new Map<string, number>()
    for (const each of projections) {
      lengths.set(each.from.name, Math.max(pending(each), lengths.get(each.from.name) ?? 0))
    }
    const inOrder = projections.toSorted((a, b) => (lengths.get(a.from.name) ?? 0) - (lengths.get(b.from.name) ?? 0))
    let staged: Step[] = []
    let isHeavy = false
    let hasMore = false
    for (const [n, projection] of inOrder.entries()) {
      if (this.#stop.signal.aborted) return false
      const isNextTopic = projection.from.name !== inOrder[n - 1]?.from.name
      if (isNextTopic && (isHeavy || (lengths.get(projection.from.name) ?? 0) > FLUSH_EVENTS)) {
        await this.#flush(store, staged, check)
        staged = []
      }
      const step = await this.#step(store, projection, checkpoints, touched)
      if (step === undefined) continue
      staged.push(step)
      const length = lengthOf(step.range)
      isHeavy ||= length > FLUSH_EVENTS
      hasMore ||= length >= STEP_EVENTS_MAX[projection.form ?? 'sql']
    }
    await this.#flush(store, staged, check)
    const hasMoreLate = await this.#stepLate(store, current.projections, check)
    this.#checkpoints = readableOf(current, stored, checkpoints)
    for (const each of current.idle.keys())
      this.#options.metrics.projectionLag.set({ projection: each.name }, pending(each))
    for (const each of projections) {
      this.#options.metrics.projectionLag.set({ projection: each.name }, pending(each))
      // Another process may have completed what failed here.
      if (this.#failures.has(each.name) && this.#hasNothingToDo(each, checkpoints)) this.#hasSucceeded(each.name)
    }
    return hasMore || hasMoreLate
  }

  /**
   * Reads the state for a pass: checkpoints and late batches before the pointers. So a pass that still writes a former
   * generation consumes nothing beyond the heads that a swap reads after it has moved the pointer, and then waits for.
   */
  async #read(): Promise<{ readonly stored: readonly Checkpoint[]; readonly current: Current }> {
    const { store, generations } = this.#options
    for (;;) {
      const current = this.#current ?? (await generations.current())
      const stored = await store.do(readCheckpoints)
      await this.#refreshLate(current)
      this.#current = await generations.current()
      this.#options.onPointers?.(this.#current.pointers)
      if (this.#current.pointers.version === current.pointers.version) return { stored, current: this.#current }
      this.#late.clear()
      this.#lateLookedAt = Number.NEGATIVE_INFINITY
    }
  }

  async #refreshLate({ projections, names }: Current): Promise<void> {
    if (performance.now() - this.#lateLookedAt < LATE_LOOK_MS) return
    // Set before the read, because another batch may be announced during it; after a failure the next pass reads again.
    this.#lateLookedAt = performance.now()
    await this.#late.refresh(this.#options.store.with({ names }), projections).catch((error: unknown) => {
      this.#lateLookedAt = Number.NEGATIVE_INFINITY
      throw error
    })
  }

  /** Consumes the next late batch of every projection; true if there may be more. */
  async #stepLate(store: Store, projections: readonly Projection[], check: () => Promise<void>): Promise<boolean> {
    const touched = new Map<string, Promise<Touched>>()
    const ranges = new Map<string, Range>()
    const computed = new Map<string, string>()
    const staged: Step[] = []
    for (const projection of projections) {
      if (this.#stop.signal.aborted) return false
      const lateBatch = this.#late.next(projection, computed)
      if (lateBatch === undefined || !this.#isDue(projection.name)) continue
      const range = ranges.get(lateBatch) ?? (await readLateRange(store, lateBatch))
      ranges.set(lateBatch, range)
      const step = await this.#stepOver(store, projection, { range, isLate: true }, touched)
      if (step === undefined) continue
      computed.set(projection.name, lateBatch)
      staged.push({ ...step, lateBatch })
    }
    await this.#flush(store, staged, check)
    return staged.length > 0
  }

  /** Stores the rows of one projection's next range. Undefined if there is nothing to do, or it failed. */
  async #step(
    store: Store,
    projection: Projection,
    checkpoints: Checkpoints,
    cache: Map<string, Promise<Touched>>
  ): Promise<Step | undefined> {
    const { name, form = 'sql' } = projection
    if (!this.#isDue(name)) return undefined
    const range = this.#rangeOf(projection, checkpoints, STEP_EVENTS_MAX[form])
    if (range.length === 0) return undefined
    const isLate = hasOlderEpoch(range, checkpoints.of(loadCheckpoint(projection.from.name)))
    const step = await this.#stepOver(store, projection, { range, isLate }, cache)
    if (step !== undefined) {
      for (const each of range) checkpoints.advance({ name: projectionCheckpoint(name), ...each })
    }
    return step
  }

  #hasNothingToDo(projection: Projection, checkpoints: Checkpoints): boolean {
    const isBehind = this.#rangeOf(projection, checkpoints, 1).length > 0
    return !isBehind && this.#late.next(projection, new Map()) === undefined
  }

  /** False while a projection is paused, or waits after a failure. */
  #isDue(projection: string): boolean {
    const failure = this.#failures.get(projection)
    return !this.#paused.has(projection) && (failure === undefined || performance.now() >= failure.retryAt)
  }

  /** Computes and stores the rows of a range. Undefined if it failed. */
  async #stepOver(
    store: Store,
    projection: Projection,
    { range, isLate }: { readonly range: Range; readonly isLate: boolean },
    cache: Map<string, Promise<Touched>>
  ): Promise<Step | undefined> {
    const { folding, metrics, isShared } = this.#options
    try {
      const touched = await this.#touched(store, projection, range, cache)
      if (touched.events > 0) {
        const done = metrics.projectionStepSeconds.startTimer({ projection: projection.name })
        await runStep({ store, folding, signal: this.#stop.signal, isShared }, projection, { range, isLate })
        done()
      }
      return { projection, range, touched }
    } catch (error) {
      this.#fail(projection.name, error)
      return undefined
    }
  }

  async #touched(
    store: Store,
    projection: Projection,
    range: Range,
    cache: Map<string, Promise<Touched>>
  ): Promise<Touched> {
    const key = JSON.stringify([projection.from.name, projection.touches.key, range])
    const touched = cache.get(key) ?? store.do(readTouched, projection, range)
    cache.set(key, touched)
    return await touched
  }

  /** Announces steps: first their changes, then their checkpoints. */
  async #flush(store: Store, steps: readonly Step[], check: () => Promise<void>): Promise<void> {
    if (steps.length === 0) return
    const { onChange } = this.#options
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
      for (const { projection } of steps) this.#fail(projection.name, error)
      throw error
    }
    for (const { projection } of steps) this.#hasSucceeded(projection.name)
    if (changes.length > 0) onChange()
  }

  #rangeOf(projection: Projection, checkpoints: Checkpoints, eventsMax: number): Range {
    const own = projectionCheckpoint(projection.name)
    const before =
      projection.after === undefined ? loadCheckpoint(projection.from.name) : projectionCheckpoint(projection.after)
    const reached = (at: { epoch: number; partition: number }) => checkpoints.next(own, at.epoch, at.partition)
    return rangeBetween(reached, checkpoints.of(before), eventsMax)
  }

  #hasSucceeded(projection: string): void {
    this.#failures.delete(projection)
    this.#options.metrics.projectionFailing.set({ projection }, 0)
  }

  #fail(projection: string, error: unknown): void {
    const count = (this.#failures.get(projection)?.count ?? 0) + 1
    const reason = errorMessage(error)
    const retryAt = performance.now() + backoffMs(this.#options.backoff ?? DEFAULT_BACKOFF, count)
    this.#failures.set(projection, { count, retryAt, reason })
    this.#options.metrics.projectionFailing.set({ projection }, 1)
    if (!this.#stop.signal.aborted) this.#options.logger.error({ projection, reason }, 'a projection failed')
  }
}

/** Returns the checkpoints of the generations that answers read: during a swap, passes already write another one. */
function readableOf({ pointers, owners }: Current, stored: readonly Checkpoint[], written: Checkpoints): Checkpoints {
  const isSwapping = pointers.all().some(({ writes, reads }) => writes !== reads)
  return isSwapping ? Checkpoints.of(stored, pointers.names('reads', owners)) : written
}

/** Returns the number of loaded offsets that a projection has not consumed. */
export function lagOf({ name, from }: Projection, checkpoints: Checkpoints): number {
  const own = projectionCheckpoint(name)
  const reached = (at: { epoch: number; partition: number }) => checkpoints.next(own, at.epoch, at.partition)
  return lengthOf(rangeBetween(reached, checkpoints.of(loadCheckpoint(from.name)), Number.MAX_SAFE_INTEGER))
}
