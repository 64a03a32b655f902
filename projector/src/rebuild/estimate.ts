/** The rate is that of the last minute. */
const RATE_SECONDS = 60

/** After this much work only the measured cost of a projection counts: seconds, or more events than the sample had. */
const TRUSTED_SECONDS = 1
const TRUSTED_EVENTS = 250_000
/** Weight of the sample, in seconds: the fixed cost of statements dominates a few small steps. */
const BELIEVED_SECONDS = 5
/** Assumed seconds per event of loading from the log, which has no sample. */
export const LOAD_COST = 7e-6
/** Minimum share of the remaining time while a step runs. */
const LEAST_LEFT = 0.05

/**
 * Estimates the remaining time of a fill: events left × seconds per event, by projection. The cost is that of the
 * sample, corrected by its error so far, until enough of the projection itself is measured. Work without a sample
 * corrects nothing.
 */
export class Estimate {
  readonly #costs: Readonly<Record<string, number>>
  readonly #sliced: readonly string[]
  /** `done` are the events of completed steps, `events` those that were filled in these seconds. */
  readonly #measured = new Map<string, { done: number; events: number; seconds: number }>()
  readonly #steps: { readonly at: number; readonly events: number; readonly seconds: number }[] = []

  /** Events for which the fill waits at its rate. */
  owed = 0

  /** Begin of the running step. */
  #begunAt: number | undefined

  /**
   * @param costs seconds per event, by projection
   * @param sliced the projections that run two steps at once
   */
  constructor(costs: Readonly<Record<string, number>>, sliced: readonly string[] = []) {
    this.#costs = costs
    this.#sliced = sliced
  }

  /**
   * Records the begin of the first step, or of one after a wait, in ms of the monotonic clock. Each other step begins
   * when the one before ends.
   */
  begin(at: number): void {
    this.#begunAt = at
  }

  /** Records that no step runs. */
  rest(): void {
    this.#begunAt = undefined
  }

  /** Records a completed step, in ms of the monotonic clock. */
  add(projection: string, events: number, seconds: number, at: number): void {
    const sum = this.#measured.get(projection) ?? { done: 0, seconds: 0 }
    const done = sum.done + events
    // Of the other step that runs, about half is done.
    const begun = this.#sliced.includes(projection) ? events / 2 : 0
    this.#measured.set(projection, { done, events: done + begun, seconds: sum.seconds + seconds })
    this.#steps.push({ at, events, seconds })
    this.#begunAt = at
    while ((this.#steps[0]?.at ?? at) < at - RATE_SECONDS * 1000) this.#steps.shift()
  }

  /** Events per second of work in the minute before the last step; null before the first step. */
  get eventsPerSecond(): number | null {
    const seconds = this.#steps.reduce((sum, step) => sum + step.seconds, 0)
    if (seconds === 0) return null
    return this.#steps.reduce((sum, step) => sum + step.events, 0) / seconds
  }

  /**
   * Returns the seconds for these events by projection, remaining or completed ones, at most at a rate in events per
   * second.
   */
  secondsFor(eventsBy: ReadonlyMap<string, number>, rate = Infinity): number {
    let predicted = 0
    let actual = 0
    for (const [projection, { events, seconds }] of this.#measured) {
      const cost = this.#costs[projection]
      if (cost === undefined) continue
      predicted += events * cost
      actual += seconds
    }
    const correction = (actual + BELIEVED_SECONDS) / (predicted + BELIEVED_SECONDS)
    let sum = 0
    for (const [projection, events] of eventsBy) {
      // A step may take long without events, such as the first one after a restart.
      const own = this.#measured.get(projection)
      const cost = this.#costs[projection]
      const estimated = cost === undefined ? LOAD_COST : cost * correction
      const isTrusted = own !== undefined && (own.seconds >= TRUSTED_SECONDS || own.events >= TRUSTED_EVENTS)
      sum += Math.max(events / rate, events * (isTrusted && own.events > 0 ? own.seconds / own.events : estimated))
    }
    return sum
  }

  /** Returns the seconds until the end, at an instant and a rate; the time of the running step so far is deducted. */
  remaining(left: ReadonlyMap<string, number>, at: number, rate = Infinity): number {
    const whole = this.secondsFor(left, rate)
    const running = this.#begunAt === undefined ? 0 : (at - this.#begunAt) / 1000
    // The step has not ended, so some time is left.
    return Math.max(whole * LEAST_LEFT, whole - running) + this.owed / rate
  }

  /**
   * Returns the completed share of the work, 0 to 1, by time: an event of one projection may cost fifty times that of
   * another, and at a rate all cost the same that the rate delays.
   */
  shareOf(done: ReadonlyMap<string, number>, left: ReadonlyMap<string, number>, rate = Infinity): number {
    const [secondsDone, secondsLeft] = [this.secondsFor(done, rate), this.secondsFor(left, rate)]
    if (secondsDone + secondsLeft > 0) return secondsDone / (secondsDone + secondsLeft)
    const [eventsDone, eventsLeft] = [sumOf(done), sumOf(left)]
    return eventsLeft === 0 ? 1 : eventsDone / (eventsDone + eventsLeft)
  }
}

function sumOf(eventsBy: ReadonlyMap<string, number>): number {
  return [...eventsBy.values()].reduce((sum, events) => sum + events, 0)
}
