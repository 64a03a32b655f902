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
