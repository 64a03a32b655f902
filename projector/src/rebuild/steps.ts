import type { Passes } from '../project/passes.js'

/**
 * The steps of rebuilds that write rows, and retries of dead letters, of all processes: so that whoever deletes rows or swaps
 * event tables can wait for what had read them before.
 */
export class Steps {
  readonly #passes: Passes
  readonly #underWay = new Set<Promise<unknown>>()
  /** Work of this process for which no step may run. */
  #alone: Promise<unknown> | undefined

  /** @param passes a lock of rebuilds alone: a live pass does not wait for them, nor a swap of read tables alone */
  constructor(passes: Passes) {
    this.#passes = passes
  }

  run<Result>(step: () => Promise<Result>): Promise<Result> {
    return this.together(step)
  }

  /** The same, for steps that look whether the lock still holds. */
  async together<Result>(step: (check: () => Promise<void>) => Promise<Result>): Promise<Result> {
    while (this.#alone !== undefined) await this.#alone
    const running = this.#passes.together(step)
    this.#underWay.add(running)
    try {
      return await running
    } finally {
      this.#underWay.delete(running)
    }
  }

  /** Runs work while no step runs in any process, nor such work. */
  async alone<Result>(work: (check: () => Promise<void>) => Promise<Result>): Promise<Result> {
    while (this.#alone !== undefined) await this.#alone
    const running = Promise.allSettled(this.#underWay).then(() => this.#passes.alone(work))
    const alone = running.catch(() => undefined)
    this.#alone = alone
    try {
      return await running
    } finally {
      this.#alone = undefined
    }
  }

  /** Resolves when the steps that have begun by now have ended, well or not. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    await this.#passes.alone(async () => undefined)
  }
}
