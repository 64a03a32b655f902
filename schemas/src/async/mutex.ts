/** Runs work one piece at a time, in the order of the calls. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve()

  /** Resolves or rejects as `work` does. Failed work does not block later work. */
  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const running = this.#last.then(work)
    this.#last = running.catch(() => undefined)
    return running
  }

  /** Resolves when all work passed to {@link run} so far has ended. Never rejects. */
  async idle(): Promise<void> {
    await this.#last
  }
}
