import { setMaxListeners } from 'node:events'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import type * as TimersPromises from 'node:timers/promises'
import { createClock } from '@sinonjs/fake-timers'

/** The owner of a task: a process, or a thread of one. Tasks of an ended life do not run. */
export type Life = {
  readonly name: string
  isOver: boolean
  /** The lead of its clock over the world's, ms. */
  skewMs: number
}

/** The life that never ends: engines, upstream, the network. */
export const WORLD: Life = { name: 'world', isOver: false, skewMs: 0 }

export const BEGIN_MS = Date.UTC(2026, 2, 14, 20, 41)
const TIMERS_MAX = 100_000

/** The exports of a builtin module. They can be replaced, also for modules that have imported them already. */
const timersPromises = createRequire(import.meta.url)('node:timers/promises') as {
  -readonly [Name in keyof typeof TimersPromises]: (typeof TimersPromises)[Name]
}
const crypto = createRequire(import.meta.url)('node:crypto') as { randomUUID: () => string }
const turnOfLoop = setImmediate

/**
 * Virtual time that jumps from one event to the next. Between two events all runnable work runs, and belongs to the
 * life of the event: so each life has its own clock, and ends with everything that it waits for.
 */
export class VirtualTime {
  current: Life = WORLD
  events = 0
  #uuids = 0
  readonly #clock = createClock(BEGIN_MS, TIMERS_MAX)

  /** Milliseconds since 1970 of a correct clock. */
  get nowMs(): number {
    return this.#clock.now
  }

  /** Runs `work` as a task of `life` after a delay, unless that life has ended. */
  after(life: Life, ms: number, work: () => void): ReturnType<typeof this.timer> {
    return this.timer(life, ms, work)
  }

  /** Resolves as a task of `life`; never after its end. */
  pause(life: Life, ms: number): Promise<void> {
    return new Promise((resolve) => this.timer(life, ms, resolve))
  }

  /** Runs one event after the other until `isDone`; returns false if none is left or the time is up. */
  async run(untilMs: number, isDone: () => boolean = () => false): Promise<boolean> {
    for (;;) {
      await new Promise((resolve) => turnOfLoop(resolve))
      if (isDone()) return true
      if (this.#clock.now >= untilMs || this.#clock.countTimers() === 0) return false
      this.#clock.next()
      this.events += 1
    }
  }

  #uuid(): string {
    this.#uuids += 1
    return `00000000-0000-4000-8000-${String(this.#uuids).padStart(12, '0')}`
  }

  private timer(life: Life, ms: number, work: () => void) {
    return this.#clock.setTimeout(() => {
      if (life.isOver) return
      this.current = life
      work()
    }, ms)
  }

  /**
   * Replaces the real time by this one, and random ids by numbered ones, in all imported modules, until the returned
   * function is called.
   */
  install(): () => void {
    const real = {
      setTimeout,
      clearTimeout,
      setInterval,
      clearInterval,
      Date,
      performanceNow: performance.now,
      wait: timersPromises.setTimeout,
      randomUUID: crypto.randomUUID
    }
    const put = (time: typeof real) => {
      globalThis.setTimeout = time.setTimeout
      globalThis.clearTimeout = time.clearTimeout
      globalThis.setInterval = time.setInterval
      globalThis.clearInterval = time.clearInterval
      globalThis.Date = time.Date
      performance.now = time.performanceNow
      timersPromises.setTimeout = time.wait
      crypto.randomUUID = time.randomUUID
      syncBuiltinESMExports()
    }
    const later = (work: (...values: unknown[]) => void, ms = 0, ...values: unknown[]) =>
      this.timer(this.current, ms, () => work(...values))
    put({
      randomUUID: () => this.#uuid(),
      setTimeout: later as unknown as typeof setTimeout,
      clearTimeout: ((id: never) => this.#clock.clearTimeout(id)) as typeof clearTimeout,
      setInterval: ((work: () => void, ms: number) => this.#every(ms, work)) as unknown as typeof setInterval,
      clearInterval: ((timer: { isOver: boolean }) => {
        if (timer !== undefined) timer.isOver = true
      }) as unknown as typeof clearInterval,
      Date: dateOf(real.Date, () => this.#clock.now + this.current.skewMs),
      performanceNow: () => this.#clock.now - BEGIN_MS,
      wait: (ms, value, options) => this.#wait(ms, value, options?.signal)
    })
    return () => put(real)
  }

  #every(ms: number, work: () => void) {
    const life = this.current
    const timer = { isOver: false, unref: () => timer, ref: () => timer }
    const again = () =>
      this.timer(life, ms, () => {
        if (timer.isOver) return
        work()
        again()
      })
    again()
    return timer
  }

  /** As `setTimeout` of `node:timers/promises`. */
  #wait<Value>(ms: number | undefined, value: Value | undefined, signal: AbortSignal | undefined): Promise<Value> {
    const life = this.current
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#clock.clearTimeout(id)
        reject(new DOMException('The operation was aborted', 'AbortError'))
      }
      const id = this.timer(life, ms ?? 0, () => {
        signal?.removeEventListener('abort', abort)
        resolve(value as Value)
      })
      if (signal?.aborted === true) abort()
      else if (signal !== undefined) {
        // A signal may have one waiter per partition.
        setMaxListeners(0, signal)
        signal.addEventListener('abort', abort, { once: true })
      }
    })
  }
}

/** Returns a `Date` of another clock. */
function dateOf(Real: DateConstructor, now: () => number): DateConstructor {
  return class extends Real {
    static override now = now

    constructor(...of: [] | [number]) {
      super(of.length === 0 ? now() : of[0])
    }
  } as DateConstructor
}
