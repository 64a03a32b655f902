import { errorMessage, Failure, isFailure, pause } from '@gamenet/schemas'
import { readRebuildOwner, storeRebuildOwner } from '../store/rebuild.js'
import { foreignStatementsIn, liveOf, type RebuildContext, reloadedTopic, stepContextOf, unitOf } from './context.js'
import { RebuildRefused, type RebuildState, StepsHeld } from './contract.js'
import { Estimate } from './estimate.js'
import { type Filling, fill, type Held, sizesAt } from './fill.js'
import { freeSpaceFor } from './free-space.js'
import { correctKey } from './one-key.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { reload } from './reload.js'
import { restAfter } from './rest-after.js'
import { isInterrupted } from './swap.js'

const ATTEMPTS = 5
/** Interval of checks for rebuilds of other processes. */
const POLL_MS = 2000
/** Longest time until a fill that waits for its rate sees that this was changed, or that it is paused. */
const PACE_MS = 500
/** Interval of heartbeats, and the age of the last one at which a process counts as dead. */
const SEEN_MS = 5000
const DEAD_MS = 30_000

/** Work between operations. */
type Ends = {
  /** Completes a swap that was interrupted. */
  readonly completeSwap: (id: number) => Promise<void>
  readonly dropLeftovers: () => void
}

/** The fills of this process. Each runs until it is complete, paused, or has failed too often. */
export class Fillers {
  readonly #context: RebuildContext
  readonly #ends: Ends
  readonly #tasks = new Map<number, Promise<void>>()
  readonly #estimates = new Map<number, Estimate>()
  #looking: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor(context: RebuildContext, ends: Ends) {
    this.#context = context
    this.#ends = ends
    context.signal.addEventListener('abort', () => clearInterval(this.#timer), { once: true })
  }

  /** Continues the fills of an earlier process, and begins those that other processes request. */
  start(): void {
    this.wake()
    if (!this.#context.isShared) return
    this.#timer = setInterval(() => this.wake(), POLL_MS)
    this.#timer.unref()
  }

  /** Checks for rebuilds to fill. */
  wake(): void {
    this.#looking = this.#looking.then(() => this.#look())
  }

  /** Resolves when this process does not run the fill. */
  async ended(id: number): Promise<void> {
    await this.#looking
    await this.#tasks.get(id)
  }

  async allEnded(): Promise<void> {
    await this.#looking
    await Promise.all(this.#tasks.values())
  }

  estimateOf({ id, costs, cuts }: RebuildRecord): Estimate {
    const estimate = this.#estimates.get(id) ?? new Estimate(costs, Object.keys(cuts))
    this.#estimates.set(id, estimate)
    return estimate
  }

  async #look(): Promise<void> {
    const { store, signal, logger } = this.#context
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        for (const record of await readRebuilds(store)) {
          const isOpen = record.state === 'filling' || isInterrupted(record)
          if (!isOpen || this.#tasks.has(record.id)) continue
          const isForeign = !isInterrupted(record) && (await foreignStatementsIn(this.#context, record)) !== undefined
          if (isForeign || !(await this.#isOurs(record))) continue
          const work = isInterrupted(record) ? this.#complete(record) : this.#fill(record)
          const task = work.finally(() => this.#tasks.delete(record.id))
          this.#tasks.set(record.id, task)
        }
        return
      } catch (error) {
        if (signal.aborted) return
        logger.warn({ reason: errorMessage(error) }, 'rebuilds cannot be listed')
        await restAfter(failures, signal)
      }
    }
  }

  /** Never rejects; a failure is retried. */
  async #complete({ id }: RebuildRecord): Promise<void> {
    const { signal, logger } = this.#context
    await this.#ends.completeSwap(id).catch(async (error: unknown) => {
      if (signal.aborted) return
      logger.error({ rebuild: id, reason: errorMessage(error) }, 'a swap that was interrupted cannot be completed')
      await restAfter(1, signal)
      this.wake()
    })
  }

  /** Never rejects: a failure is a state. */
  async #fill(record: RebuildRecord): Promise<void> {
    const { signal, logger } = this.#context
    const beat = setInterval(() => void this.#saySeen(record).catch(() => undefined), SEEN_MS)
    beat.unref()
    let held = 0
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        if (record.key === null) await this.#fillOnce(record)
        else await correctKey(this.#context, record)
        break
      } catch (error) {
        if (signal.aborted) break
        if (error instanceof StepsHeld) {
          attempt -= 1
          held += 1
          if (held === 1) logger.warn({ rebuild: record.id, reason: error.message }, 'a rebuild waits')
          if (await this.#isEnded(record, 'filling', '').catch(() => false)) break
          await restAfter(held, signal)
          continue
        }
        const isFull = isFailure(error, 'no_space')
        const reason = errorMessage(isFull ? error : ((await this.#context.explain?.(error)) ?? error))
        if (isFull) logger.warn({ rebuild: record.id, reason }, 'a rebuild is paused')
        else logger.error({ rebuild: record.id, reason: errorMessage(error) }, 'a rebuild failed')
        const isLast = attempt >= ATTEMPTS || error instanceof RebuildRefused
        const end = record.key !== null ? 'cancelled' : isFull ? 'paused' : 'failed'
        const state = isFull || isLast ? end : 'filling'
        // If the state cannot be stored, the fill is retried.
        if (await this.#isEnded(record, state, reason).catch(() => false)) break
        await restAfter(attempt, signal)
      }
    }
    clearInterval(beat)
    if (record.key === null || signal.aborted) return
    this.#ends.dropLeftovers()
    // Its swap may have been interrupted.
    this.wake()
  }

  /** Stores the state of a failed fill. Returns whether it ends: by this state, or by an operator. */
  async #isEnded(record: RebuildRecord, state: RebuildState, reason: string): Promise<boolean> {
    if ((await this.#fillingNow(record)) === undefined) return true
    if (state === 'filling') return false
    await this.#change(record, { state, reason })
    return true
  }

  async #fillOnce(record: RebuildRecord): Promise<void> {
    const { store, signal, reservedBytes } = this.#context
    const estimate = this.estimateOf(record)
    const step = stepContextOf(this.#context, record, await liveOf(this.#context))
    let notedAt = performance.now()
    const pace = new Pace(notedAt)
    let { rate } = record
    /** Waits until the rate allows the next step; false if the fill has been paused or ended meanwhile. */
    const keepsPace = async (held: Held): Promise<boolean> => {
      for (;;) {
        const now = signal.aborted ? undefined : await this.#fillingNow(record)
        if (now === undefined) return false
        rate = now.rate
        const waitMs = pace.waitMs(rate, performance.now())
        estimate.owed = (waitMs * (rate ?? 0)) / 1000
        if (waitMs === 0) return true
        await held(() => pause(Math.min(waitMs, PACE_MS), signal).catch(() => undefined))
        notedAt = performance.now()
        estimate.begin(notedAt)
      }
    }
    const filling: Filling = {
      // A statement of a fill may last half a minute.
      step: { ...step, store: step.store.with({ signal }) },
      unit: unitOf(this.#context, record),
      record,
      sizes: () => sizesAt(this.#context.sizes, rate),
      shouldContinue: async (held = (wait) => wait()) => {
        if (!(await keepsPace(held))) return false
        const [obstacle] = (await freeSpaceFor(store, 0, reservedBytes)).obstacles
        if (obstacle !== undefined) throw new Failure('no_space', obstacle)
        return true
      },
      // Steps overlap: each counts from the end of the one before, so that their sum is the elapsed time.
      onStep: ({ projection, events }) => {
        const now = performance.now()
        estimate.add(projection, events, (now - notedAt) / 1000, now)
        notedAt = now
        pace.took(events)
      }
    }
    estimate.begin(notedAt)
    const isDone = await this.#fillAll(filling).finally(() => estimate.rest())
    if (isDone) await this.#change(record, { state: 'filled', reason: null })
  }

  async #fillAll(filling: Filling): Promise<boolean> {
    const { record } = filling
    const topic = reloadedTopic(record)
    const isLoaded =
      topic === undefined || (await reload(this.#context, record, topic, record.target[topic.name] ?? [], filling))
    // The rate counts for the last step, too.
    return isLoaded && (await fill(filling)) && (await filling.shouldContinue())
  }

  /** Returns the newest record of a rebuild; undefined unless it is `filling`. */
  async #fillingNow({ id }: RebuildRecord): Promise<RebuildRecord | undefined> {
    return (await readRebuilds(this.#context.store)).find((each) => each.id === id && each.state === 'filling')
  }

  /** Changes the record only while it is `filling`: an operator may have changed it. */
  async #change(record: RebuildRecord, change: Partial<RebuildRecord>): Promise<void> {
    const newest = await this.#fillingNow(record)
    if (newest !== undefined) await storeRebuild(this.#context.store, newest, change, 'fill')
  }

  async #isOurs(record: RebuildRecord): Promise<boolean> {
    const { store, isShared, process } = this.#context
    if (!isShared) return true
    const owner = await store.do(readRebuildOwner, record.id)
    const isFree = owner === undefined || owner.process === process || owner.ageMs > DEAD_MS
    if (isFree) await this.#saySeen(record)
    return isFree
  }

  async #saySeen({ id }: RebuildRecord): Promise<void> {
    const { store, isShared, process } = this.#context
    if (isShared) await store.do(storeRebuildOwner, id, process)
  }
}

/** Holds the mean rate of a fill at most at a number of events per second, which may change. */
export class Pace {
  #owed = 0
  #at: number

  /** @param at in ms of the monotonic clock, as all instants here */
  constructor(at: number) {
    this.#at = at
  }

  /** Records events that were filled. */
  took(events: number): void {
    this.#owed += events
  }

  /** Returns the time until the next step may begin, in whole ms; `rate` is null without a limit. */
  waitMs(rate: number | null, at: number): number {
    const passedMs = at - this.#at
    this.#at = at
    this.#owed = rate === null ? 0 : Math.max(0, this.#owed - (rate * passedMs) / 1000)
    return rate === null ? 0 : Math.ceil((this.#owed / rate) * 1000)
  }
}
