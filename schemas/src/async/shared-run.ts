/**
 * Runs one piece of work at a time. Calls during a run share the next run, so that each call sees everything before it.
 */
export class SharedRun<Result> {
  readonly #work: () => Promise<Result>
  #running: Promise<Result> | undefined
  #next: Promise<Result> | undefined

  constructor(work: () => Promise<Result>) {
    this.#work = work
  }

  /** Resolves or rejects as the first run that begins after the call. */
  run(): Promise<Result> {
    if (this.#running === undefined) {
      this.#running = this.#work().finally(() => {
        this.#running = undefined
      })
      return this.#running
    }
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.run()
      })
    return this.#next
  }

  /** Resolves when the current run has ended. Never rejects. */
  async idle(): Promise<void> {
    await this.#running?.catch(() => undefined)
  }
}
