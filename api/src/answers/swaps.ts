import { Refusal, withTimeout } from '@gamenet/schemas'
import type { SwapCount } from './consistent-reads.js'

/** Far above what a swap takes; a request that waits longer gets the last answer, or 503. */
const PATIENCE_MS = 5000

/** The swaps of a service whose tables nobody else reads: all of them happen in this process. */
export class Swaps implements SwapCount {
  readonly #learn: (projections: readonly string[]) => Promise<void>
  readonly #patienceMs: number
  #count = 0
  #underWay: Promise<void> | undefined

  /** @param options.learn brings what is kept in memory up to date behind a swap */
  constructor(options: {
    readonly learn: (projections: readonly string[]) => Promise<void>
    readonly patienceMs?: number
  }) {
    this.#learn = options.learn
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS
  }

  async before(): Promise<number> {
    while (this.#underWay !== undefined) {
      await withTimeout(this.#underWay, this.#patienceMs, () => {
        throw new Refusal('engine_busy', [], { retryAfterSeconds: 1 })
      })
    }
    return this.#count
  }

  after(): number {
    return this.#count
  }

  /** Runs a swap of these projections' tables; gives for how many ms reading waited. */
  async around(projections: readonly string[], swap: () => Promise<void>): Promise<number> {
    while (this.#underWay !== undefined) await this.#underWay
    const begunAt = performance.now()
    let open = (): void => undefined
    this.#underWay = new Promise((resolve) => {
      open = resolve
    })
    this.#count += 1
    try {
      await swap()
    } finally {
      await this.#learn(projections).finally(() => {
        this.#count += 1
        this.#underWay = undefined
        open()
      })
    }
    return performance.now() - begunAt
  }
}
