import { setImmediate as nextTurn } from 'node:timers/promises'

/** Time of streams per cycle. */
const WORK_MS = 2
/** Turns of the event loop in a cycle that streams leave to others: Node accepts one connection in each. */
const TURNS = 8
/** Limit of these turns: while other work fills them, streams would hardly begin. */
const TURNS_MS_MAX = 4
/** The same while connections arrive: each waits for those before it. */
const ACCEPTING_MS_MAX = 100

/** `begin`: a step of a new stream or a long poll. `catch-up`: a page of history. */
export type Turn = 'begin' | 'catch-up'

/**
 * The share of the event loop that streams have while they begin and catch up: otherwise all answers and new
 * connections would wait behind the streams that read their history. What a caller does until its next `await` counts
 * as its piece of work.
 */
export class Share {
  readonly #waiting: Readonly<Record<Turn, (() => void)[]>> = { begin: [], 'catch-up': [] }
  readonly #now: () => number
  #accepted = 0
  #isRunning = false
  #isBeginNext = false

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Resolves when the caller may do a piece of work. */
  turn(of: Turn): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting[of].push(resolve)
      if (!this.#isRunning) void this.#run()
    })
  }

  /** Called for each new connection. */
  accepted(): void {
    this.#accepted += 1
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const endsAt = this.#now() + WORK_MS
      for (; next !== undefined; next = this.#now() < endsAt ? this.#next() : undefined) {
        next()
        // The piece of work follows its promise.
        await undefined
      }
      await this.#turnsOfOthers()
    }
    this.#isRunning = false
  }

  /** Ends after some turns without a new connection. */
  async #turnsOfOthers(): Promise<void> {
    const beganAt = this.#now()
    let endsAt = beganAt + TURNS_MS_MAX
    for (let turn = 0; turn < TURNS && this.#now() < endsAt; turn += 1) {
      const before = this.#accepted
      await nextTurn()
      if (this.#accepted === before) continue
      turn = 0
      endsAt = beganAt + ACCEPTING_MS_MAX
    }
  }

  /** New streams and those that catch up alternate. */
  #next(): (() => void) | undefined {
    const { begin, 'catch-up': catchUp } = this.#waiting
    this.#isBeginNext = !this.#isBeginNext
    return this.#isBeginNext ? (begin.shift() ?? catchUp.shift()) : (catchUp.shift() ?? begin.shift())
  }
}
