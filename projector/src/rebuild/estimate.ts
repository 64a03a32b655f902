/** Steps of the last minute tell the rate. */
const RATE_SECONDS = 60

/** Work from which on a projection's own cost counts alone: in seconds, or more events than the sample had. */
const TRUSTED_SECONDS = 1
const TRUSTED_EVENTS = 250_000
/** Seconds by which the sample is believed: of a few small steps what statements cost beside their rows would be most. */
const BELIEVED_SECONDS = 5
/** Seconds an event of loading from the log, of which no sample is taken, until it has shown its own. */
export const LOAD_COST = 7e-6
/** So much of what was left before a step is left while it runs. */
const LEAST_LEFT = 0.05

/**
 * How long a fill still takes: what is left of each projection by what an event of it costs. Costs begin as the sample told, are
 * corrected by how far the sample was off so far, and are the projection's own once it has shown them. What was not sampled says
 * nothing of the others.
 */
export class Estimate {
  readonly #costs: Readonly<Record<string, number>>
  readonly #measured = new Map<string, { events: number; seconds: number }>()
  readonly #steps: { readonly at: number; readonly events: number; readonly seconds: number }[] = []

  /** When the step began that runs now. */
  #begunAt: number | undefined

  /** @param costs seconds an event, by projection */
  constructor(costs: Readonly<Record<string, number>>) {
    this.#costs = costs
  }

  /** The first step begins, at an instant of the monotonic clock in ms; each later one when the one before is done. */
  begin(at: number): void {
    this.#begunAt = at
  }

  /** No step runs. */
  rest(): void {
    this.#begunAt = undefined
  }

  /** A step was done, at an instant of the monotonic clock in ms. */
  add(projection: string, events: number, seconds: number, at: number): void {
    const sum = this.#measured.get(projection) ?? { events: 0, seconds: 0 }
    this.#measured.set(projection, { events: sum.events + events, seconds: sum.seconds + seconds })
    this.#steps.push({ at, events, seconds })
    this.#begunAt = at
    while ((this.#steps[0]?.at ?? at) < at - RATE_SECONDS * 1000) this.#steps.shift()
  }

  /** Events a second while it worked, in the last minute before its last step; null before the first. */
  get eventsPerSecond(): number | null {
    const seconds = this.#steps.reduce((sum, step) => sum + step.seconds, 0)
    if (seconds === 0) return null
    return this.#steps.reduce((sum, step) => sum + step.events, 0) / seconds
  }

  /** Seconds that so many events take, by projection: of what is left, or of what is done. */
  secondsFor(eventsBy: ReadonlyMap<string, number>): number {
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
      // A step may take long and find nothing to do, such as the first one after a restart.
      const own = this.#measured.get(projection)
      const cost = this.#costs[projection]
      const told = cost === undefined ? LOAD_COST : cost * correction
      const isShown = own !== undefined && own.events > 0 && isTrusted(own)
      sum += events * (isShown ? own.seconds / own.events : told)
    }
    return sum
  }

  /** Seconds until all that is left is done, at an instant: less by what the step that runs has taken already. */
  remaining(left: ReadonlyMap<string, number>, at: number): number {
    const whole = this.secondsFor(left)
    const running = this.#begunAt === undefined ? 0 : (at - this.#begunAt) / 1000
    // It has not ended, however long it takes.
    return Math.max(whole * LEAST_LEFT, whole - running)
  }

  /** How much of the work is done, from 0 to 1: an event of one projection may cost fifty times that of another. */
  shareOf(done: ReadonlyMap<string, number>, left: ReadonlyMap<string, number>): number {
    const [secondsDone, secondsLeft] = [this.secondsFor(done), this.secondsFor(left)]
    if (secondsDone + secondsLeft > 0) return secondsDone / (secondsDone + secondsLeft)
    const [eventsDone, eventsLeft] = [sumOf(done), sumOf(left)]
    return eventsLeft === 0 ? 1 : eventsDone / (eventsDone + eventsLeft)
  }
}

function isTrusted({ events, seconds }: { readonly events: number; readonly seconds: number }): boolean {
  return seconds >= TRUSTED_SECONDS || events >= TRUSTED_EVENTS
}

function sumOf(eventsBy: ReadonlyMap<string, number>): number {
  return [...eventsBy.values()].reduce((sum, events) => sum + events, 0)
}
