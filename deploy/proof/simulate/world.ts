import { Chance } from './chance.js'
import { BEGIN_MS, type Life, VirtualTime, WORLD } from './virtual-time.js'

/** Processes call these over the network, so each can be unavailable. */
export const ENGINES = ['tables', 'log', 'postgres', 'upstream'] as const
export type Engine = (typeof ENGINES)[number]

/** Rates of faults, as shares of calls; many seeds have only some of them, which finds more. */
export type Faults = {
  /** The request is lost. */
  readonly refused: number
  /** The request succeeds, and its answer is lost. */
  readonly unanswered: number
  /** A part of the rows is stored, then an error is returned. */
  readonly torn: number
  readonly slow: number
  /** The process dies during the call, before or after its effect. */
  readonly death: number
  /** Maximum delay of a request or an answer, ms. */
  readonly delayMs: number
}

const SLOW_MS = 4000
const TRACE_LINES_MAX = 20_000

/** The effect of a call. */
export type Effect<Result> = {
  readonly what: string
  done(): Result
  /** Applies a part of the effect. */
  torn?(): void
  /** Fails on a full disk. */
  readonly takesSpace?: boolean
  /** Factor of the fault rates, above 1 for rare calls. */
  readonly risk?: number
  /** Whether it inserts rows. */
  readonly isWriting?: boolean
}

/** The world of one seed: time, chance, and a network between processes and engines. */
export class World {
  readonly time = new VirtualTime()
  readonly chance: Chance
  readonly trace: string[] = []
  readonly away = new Set<Engine>()
  /** The engines are in the process: their statements die with it. */
  areEmbedded = false
  isFull = false
  faults: Faults
  /**
   * Inserts that have begun, including those in transit: the engine may execute them although their process has died.
   */
  readonly inserts = new Set<string>()
  /** Called with the life that a call ends. */
  onDeath: (life: Life) => void = () => undefined
  readonly #isTraced: boolean
  #lastInsert = 0

  constructor(seed: number, isTraced: boolean) {
    this.chance = new Chance(seed)
    this.#isTraced = isTraced
    this.faults = faultsOf(this.chance)
  }

  /** One line of the trace. */
  note(what: string, life: Life = this.time.current): void {
    if (!this.#isTraced) return
    const seconds = ((this.time.nowMs - BEGIN_MS) / 1000).toFixed(3).padStart(8)
    this.trace.push(`${seconds} s  ${life.name.padEnd(12)} ${what}`)
    if (this.trace.length > TRACE_LINES_MAX) this.trace.shift()
  }

  /** Ends all faults. */
  calm(): void {
    this.away.clear()
    this.isFull = false
    this.faults = { refused: 0, unanswered: 0, torn: 0, slow: 0, death: 0, delayMs: 3 }
  }

  /** Makes a call over the network, with its faults. Never settles for an ended life. */
  call<Result>(engine: Engine, effect: Effect<Result>): Promise<Result> {
    const { chance, time, faults } = this
    const life = time.current
    if (life.isOver) return new Promise(() => undefined)
    const isLost = chance.happens(0.5)
    const fate = this.#fate(effect)
    const wayMs = () => chance.below(faults.delayMs + 1) + (fate === 'slow' ? chance.below(SLOW_MS) : 0)
    const backMs = wayMs()
    const insert = effect.isWriting === true ? this.#begin() : undefined
    return new Promise((resolve, reject) => {
      const fail = (reason: string) => {
        this.note(`${effect.what}: ${reason}`, life)
        time.after(life, backMs, () => reject(new Error(`${effect.what}: ${reason}`)))
      }
      time.after(WORLD, wayMs(), () => {
        if (insert !== undefined) this.inserts.delete(insert)
        if (life.isOver && (isLost || this.areEmbedded)) return
        if (this.away.has(engine)) return fail(`${engine} is unavailable`)
        if (fate === 'refused') return fail('refused')
        if (effect.takesSpace === true && this.isFull) return fail('ENOSPC, no space left on the disk')
        if (fate === 'death before') {
          this.note(`dies before ${effect.what}`, life)
          return this.onDeath(life)
        }
        if (fate === 'torn') {
          effect.torn?.()
          return fail('torn')
        }
        this.#finish(effect, fate, life, {
          fail,
          answer: (work) => void time.after(life, backMs, work),
          resolve,
          reject
        })
      })
    })
  }

  #begin(): string {
    this.#lastInsert += 1
    const id = String(this.#lastInsert)
    this.inserts.add(id)
    return id
  }

  #finish<Result>(
    effect: Effect<Result>,
    fate: Fate,
    life: Life,
    ends: {
      fail(reason: string): void
      answer(work: () => void): void
      resolve(result: Result): void
      reject(error: unknown): void
    }
  ): void {
    let result: Result
    try {
      result = effect.done()
    } catch (error) {
      ends.answer(() => ends.reject(error))
      return
    }
    this.note(effect.what, life)
    if (fate === 'death after') {
      this.note(`dies after ${effect.what}`, life)
      this.onDeath(life)
    } else if (fate === 'unanswered') ends.fail('done, the answer was lost')
    else ends.answer(() => ends.resolve(result))
  }

  #fate(effect: Effect<unknown>): Fate {
    const { refused, unanswered, torn, slow, death } = this.faults
    const drawn = this.chance.number() / (effect.risk ?? 1)
    const isEarly = this.chance.happens(0.5)
    let end = 0
    const isDrawn = (share: number) => {
      end += share
      return drawn < end
    }
    if (isDrawn(refused)) return 'refused'
    if (isDrawn(unanswered)) return 'unanswered'
    if (isDrawn(torn)) return effect.torn === undefined ? 'refused' : 'torn'
    if (isDrawn(slow)) return 'slow'
    if (isDrawn(death)) return isEarly ? 'death before' : 'death after'
    return 'done'
  }
}

type Fate = 'done' | 'refused' | 'unanswered' | 'torn' | 'slow' | 'death before' | 'death after'

function faultsOf(chance: Chance): Faults {
  const share = (most: number) => (chance.happens(0.5) ? 0 : chance.number() * most)
  return {
    refused: share(0.04),
    unanswered: share(0.04),
    torn: share(0.05),
    slow: share(0.12),
    death: share(0.008),
    delayMs: chance.oneOf([2, 10, 60, 400])
  }
}
