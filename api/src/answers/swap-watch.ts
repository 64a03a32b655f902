import { setTimeout as wait } from 'node:timers/promises'
import { Refusal, SharedRun } from '@gamenet/schemas'
import type { SwapCount } from './consistent-reads.js'

/*
 * Swaps where several processes read the tables. The projector that is about to swap announces it in the table
 * `exchange`, waits for longer than SWAP_QUIET_MS, says that it begins, swaps, and says that it has ended. So a process that
 * has asked the table less than SWAP_QUIET_MS ago, and found nothing announced, knows without asking that nothing is
 * swapped yet. Everybody else asks the table once more behind what they have read.
 */

/** For how long it is known that nothing is swapped, from when it was asked whether something is announced. */
export const SWAP_QUIET_MS = 1000
/** How often it is asked meanwhile whether a swap that began has ended. */
const ASK_AGAIN_MS = 20
/** A request that waits longer gets the last answer, or 503. */
const PATIENCE_MS = 5000
/**
 * A swap takes some milliseconds. Of one that takes so long the process was killed in the middle; until another ends
 * it, tables are reported as they are.
 */
const HELD_MS_MAX = 10_000

/** The newest swap that was announced; undefined where none ever was. */
export type NewestSwap = () => Promise<
  { readonly id: number; readonly state: 'announced' | 'begun' | 'ended' } | undefined
>

/** Time as this process measures it. */
export type Clock = {
  /** Milliseconds that never go back. */
  now(): number
  wait(ms: number): Promise<void>
}

const CLOCK: Clock = { now: () => performance.now(), wait: (ms) => wait(ms, undefined, { ref: false }) }

type Known = {
  readonly count: number
  readonly state: 'announced' | 'begun' | 'ended'
  /** By this process's clock. */
  readonly readAt: number
  /** When it was first found in this state. */
  readonly since: number
}

/** What this process knows of swaps by asking the tables. */
export class SwapWatch implements SwapCount {
  readonly #newest: NewestSwap
  readonly #learn: () => Promise<void>
  readonly #clock: Clock
  #known: Known | undefined
  readonly #reading = new SharedRun(() => this.#learnState())
  #isStopped = false

  /** @param needs.learn brings what is kept in memory up to date behind a swap */
  constructor(needs: { readonly newest: NewestSwap; readonly learn: () => Promise<void>; readonly clock?: Clock }) {
    this.#newest = needs.newest
    this.#learn = needs.learn
    this.#clock = needs.clock ?? CLOCK
  }

  /** Asks every `intervalMs` until `stop`, so that reading need not. One that fails is tried again. */
  start(intervalMs: number): void {
    const turns = async (): Promise<void> => {
      while (!this.#isStopped) {
        await this.#ask().catch(() => undefined)
        await this.#clock.wait(intervalMs)
      }
    }
    void turns()
  }

  /** What is under way is waited for. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#reading.idle()
  }

  async before(): Promise<number> {
    const begun = this.#clock.now()
    let known = this.#known !== undefined && this.#isFresh(this.#known) ? this.#known : await this.#ask()
    while (known.state === 'begun' && this.#clock.now() - known.since < HELD_MS_MAX) {
      if (this.#clock.now() - begun > PATIENCE_MS) throw new Refusal('engine_busy', [], { retryAfterSeconds: 1 })
      await this.#clock.wait(ASK_AGAIN_MS)
      known = await this.#ask()
    }
    return known.count
  }

  after(): Promise<number> | number {
    const known = this.#known
    if (known?.state === 'ended' && this.#isFresh(known)) return known.count
    return this.#ask().then(({ count }) => count)
  }

  /** Asks the table behind the call; calls that come while one runs share the next one. */
  #ask(): Promise<Known> {
    return this.#reading.run()
  }

  async #learnState(): Promise<Known> {
    const readAt = this.#clock.now()
    const { id, state } = (await this.#newest()) ?? { id: 0, state: 'ended' as const }
    const count = 2 * id - { announced: 2, begun: 1, ended: 0 }[state]
    const before = this.#known
    // The projector's earlier announcements contain only changes of ended steps.
    if (before?.count !== count && state !== 'begun') await this.#learn()
    const isSame = before?.count === count && before.state === state
    this.#known = { count, state, readAt, since: isSame ? before.since : readAt }
    return this.#known
  }

  #isFresh({ readAt }: Known): boolean {
    return this.#clock.now() - readAt <= SWAP_QUIET_MS
  }
}
