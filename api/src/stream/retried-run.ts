import { backoffMs, DEFAULT_BACKOFF } from '@gamenet/schemas'

/** Runs work after a delay, and retries it with growing delays while it fails. */
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

  /** Schedules the run after `ms`; replaces a scheduled one. */
  after(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#run(), ms).unref()
  }

  /** Cancels the scheduled run and all later ones. */
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
