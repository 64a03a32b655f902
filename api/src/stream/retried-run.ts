import { backoffMs, DEFAULT_BACKOFF } from '@gamenet/schemas'

/** Runs work after a delay, and again with growing delays while it fails. */
export class RetriedRun {
  readonly #work: () => Promise<void>
  readonly #onFailure: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  #isClosed = false

  constructor(work: () => Promise<void>, onFailure: (error: unknown) => void) {
    this.#work = work
    this.#onFailure = onFailure
  }

  /** Runs it after so many milliseconds, instead of a run that was planned before. */
  after(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#run(), ms).unref()
  }

  /** Runs nothing more. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #run(): Promise<void> {
    try {
      await this.#work()
      this.#failures = 0
    } catch (error) {
      if (this.#isClosed) return
      this.#onFailure(error)
      this.#failures += 1
      this.after(backoffMs(DEFAULT_BACKOFF, this.#failures))
    }
  }
}
