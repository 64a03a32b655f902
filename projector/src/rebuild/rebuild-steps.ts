import type { PassLock } from '../project/pass-lock.js'

/** The steps of rebuilds and retries of dead letters, of all processes: deletions and swaps wait for steps that have read rows before. */
export class RebuildSteps {
  readonly #passes: PassLock
  readonly #underWay = new Set<Promise<unknown>>()
  /** Work of this process for which no step may run. */
  #exclusive: Promise<unknown> | undefined

  /** @param passes a lock of rebuilds alone: live passes do not take it */
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
    const alone = running.catch(() => undefined)
    this.#exclusive = alone
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
