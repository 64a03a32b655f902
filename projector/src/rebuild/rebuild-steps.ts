import type { PassLock } from '../generations/pass-lock.js'

/**
 * Steps of rebuilds and retries of dead letters in all processes: deletions and swaps wait for steps that read earlier
 * rows.
 */
export class RebuildSteps {
  readonly #passes: PassLock
  readonly #underWay = new Set<Promise<unknown>>()
  /** Exclusive work of this process. */
  #exclusive: Promise<unknown> | undefined

  /** @param passes a lock for rebuilds; live passes do not acquire it */
  constructor(passes: PassLock) {
    this.#passes = passes
  }

  run<Result>(step: () => Promise<Result>): Promise<Result> {
    return this.shared(step)
  }

  /** Runs a step; `check` rejects if the lock may be lost. */
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

  /** Runs work while no step and no other exclusive work runs in any process. */
  async exclusive<Result>(work: (check: () => Promise<void>) => Promise<Result>): Promise<Result> {
    while (this.#exclusive !== undefined) await this.#exclusive
    const running = Promise.allSettled(this.#underWay).then(() => this.#passes.exclusive(work))
    const ended = running.catch(() => undefined)
    this.#exclusive = ended
    try {
      return await running
    } finally {
      this.#exclusive = undefined
    }
  }

  /** Resolves when the steps that have begun have ended or failed. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    await this.#passes.exclusive(async () => undefined)
  }
}
