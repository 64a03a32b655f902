import {
  type Backoff,
  backoffMs,
  DEFAULT_BACKOFF,
  errorMessage,
  type Logger,
  loadCheckpoint,
  pause
} from '@gamenet/schemas'
import type { Idle } from '../generations/generations.js'
import { LOCAL_PASS_LOCK, type PassLock } from '../generations/pass-lock.js'
import { Checkpoints } from '../store/checkpoint.js'
import { DataChanges } from './data-changes.js'
import type { Division } from './division.js'
import { Failures } from './failures.js'
import { Pass, type PassNeeds } from './pass.js'

/** Interval of reads of checkpoints without a notification: another process may have loaded. */
const POLL_MS = 1000
/**
 * Minimum time between two passes while a backlog is loaded, at least four times the duration of the last pass: fewer,
 * larger steps leave the engine to the loader. A step costs as much for 15,000 events as for ten times as many.
 */
const BUSY_SPACING_MS = 1000
const BUSY_SPACING_PASSES = 4

export type RunnerOptions = PassNeeds & {
  /** Cross-process lock; set when several projectors run. */
  readonly passLock?: PassLock
  readonly division: Division
  readonly logger: Logger
  /** Called after each pass, with or without changes. */
  readonly onPass: () => void
  /** True while a backlog is loaded. */
  readonly isLoaderBusy: () => boolean
  readonly backoff?: Backoff
}

export type ProjectionState = {
  /**
   * `outdated`: an earlier version has filled its tables, or those that it reads; `damaged`: rows of these may be
   * missing. A rebuild replaces them. `elsewhere`: another projector runs it.
   */
  readonly state: 'running' | 'failing' | 'elsewhere' | Idle['state']
  /** Why it does not run, else null. */
  readonly reason: string | null
}

/** Runs passes over loaded events, one after the other, and work between them. */
export class ProjectionRunner {
  readonly #options: RunnerOptions
  readonly #passes: PassLock
  readonly #failures: Failures
  readonly #changes: DataChanges
  readonly #pass: Pass
  readonly #stop = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #isWoken = false
  #wake: () => void = () => {}
  #isInPass = false
  /** Why the last pass failed; null after one that ended. */
  #trouble: string | null = null
  #troubles = 0
  /** Work for which no pass may run. */
  #pendingWork: (() => Promise<void>)[] = []

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#passes = options.passLock ?? LOCAL_PASS_LOCK
    this.#failures = new Failures(options.metrics, options.logger, options.backoff)
    this.#changes = new DataChanges(options.store, options.isShared)
    this.#pass = new Pass(options, this.#failures, this.#changes, this.#stop.signal)
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Ends after the current statement. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#wake()
    await this.#running
    await this.#options.division.end()
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

  /** Announces that everything of these projections, or of one key of them, may have changed. */
  async announceChanged(projections: readonly string[], key?: string): Promise<void> {
    await this.#changes.announceChanged(projections, key === undefined ? {} : { key })
    this.#options.onChange()
  }

  /**
   * Runs the next step of projections, also of those that wait for a retry: a pass that failed after its rows left them
   * beyond the checkpoint. A projection that fails again stays where it is. For work between passes, with its `check`.
   */
  async stepOnce(names: ReadonlySet<string>, check: () => Promise<void>): Promise<void> {
    this.#failures.retryNow(names)
    this.#pass.lookForLate()
    await this.#pass.run(check, { names })
  }

  /** Notifies that events were loaded. */
  wake(): void {
    this.#isWoken = true
    this.#wake()
  }

  /** Notifies that a batch of late events was stored. */
  wakeForLate(): void {
    this.#pass.lookForLate()
    this.wake()
  }

  /** The checkpoints that the last pass read and reached, including the loader's; empty before the first pass. */
  get checkpoints(): Checkpoints {
    return this.#pass.checkpoints ?? new Checkpoints()
  }

  /** True once a pass has read all checkpoints. */
  get hasPassed(): boolean {
    return this.#pass.checkpoints !== undefined
  }

  /** True while a pass runs, which may take long. */
  get isInPass(): boolean {
    return this.#isInPass
  }

  state(projection: string): ProjectionState {
    const [, idle] = [...(this.#pass.current?.idle ?? [])].find(([{ name }]) => name === projection) ?? []
    if (idle !== undefined) return idle
    const reason = this.#failures.reasonOf(projection) ?? this.#trouble
    if (reason !== null) return { state: 'failing', reason }
    return { state: this.#pass.isElsewhere(projection) ? 'elsewhere' : 'running', reason }
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
      const hasMore = await this.#options.division.run(
        (topic) => this.checkpoints.of(loadCheckpoint(topic)).reduce((sum, { next }) => sum + next, 0),
        (own) => this.#passes.shared((check) => this.#pass.run(check, { own }))
      )
      this.#trouble = null
      this.#troubles = 0
      return hasMore ? 0 : Math.max(0, Math.min(POLL_MS, this.#failures.msToRetry()))
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
}
