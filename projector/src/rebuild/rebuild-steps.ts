import type { PassLock } from '../project/pass-lock.js'

/**
 * The steps of rebuilds that write rows, and retries of dead letters, of all processes: so that code that deletes rows or swaps
 * event tables can wait for what had read them before.
 */
export class RebuildSteps {
  readonly #passes: PassLock
  readonly #underWay = new Set<Promise<unknown>>()
  /** Work of this process for which no step may run. */
  #exclusive: Promise<unknown> | undefined

  /** @param passes a lock of rebuilds alone: a live pass does not wait for them, nor a swap of read tables alone */
  constructor(passes: PassLock) {
    this.#passes = passes
  }

  run<Result>(step: () => Promise<Result>): Promise<Result> {
    return this.shared(step)
  }

  /** The same, for steps that look whether the lock still holds. */
  async shared<Result>(step: (check: () => Promise<void>) => Promise<Result>): Promise<Result> {
    while (this.#exclusive !== undefined) await this.#exclusive
    const running = this.#passes.shared(step)
    this.#underWay.add(running)
    try {
      return await running
    } finally {
      this.#underWay.delete(running)
    }
  }

  /** Runs work while no step runs in any process, nor such work. */
  async exclusive<Result>(work: (check: () => Promise<void>) => Promise<Result>): Promise<Result> {
    while (this.#exclusive !== undefined) await this.#exclusive
    const running = Promise.allSettled(this.#underWay).then(() => this.#passes.exclusive(work))
    const alone = running.catch(() => undefined)
    this.#exclusive = alone
    try {
      return await running
    } finally {
      this.#exclusive = undefined
    }
  }

  /** Resolves when the steps that have begun by now have ended, well or not. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    await this.#passes.exclusive(async () => undefined)
  }
}
