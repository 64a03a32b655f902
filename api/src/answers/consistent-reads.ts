import { Refusal } from '@gamenet/schemas'

/*
 * swap      the tables that a rebuild filled take the places of those that served: some statements, within milliseconds.
 *           What is asked before and behind one, or while it is under way, may be told by old and new tables
 * apart     read wholly before a swap, or wholly behind it
 * count     rises when a swap begins, and when it has ended
 */

/** What is known of swaps. */
export type SwapCount = {
  /** The count once no swap is under way, and none that has ended is unknown to what is kept in memory. */
  before(): Promise<number>
  /** The count at an instant behind the call. */
  after(): Promise<number> | number
}

/** Swaps are rare, and the next one waits for an operator. */
const TRIES_MAX = 5
const BUSY_RETRY_SECONDS = 1

/** A swap came in between; nothing that was read counts. */
class TablesSwapped extends Error {}

/** Sees to it that what is read of several tables, or in several statements, is read apart from swaps. */
export class ConsistentReads {
  readonly #count: SwapCount

  constructor(count: SwapCount) {
    this.#count = count
  }

  /** Reads, again where a swap came in between. What it rejects with was met apart from swaps too. */
  async read<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      try {
        return await this.readOnce(work)
      } catch (error) {
        if (!(error instanceof TablesSwapped)) throw error
      }
    }
    throw new Refusal('engine_busy', [], { retryAfterSeconds: BUSY_RETRY_SECONDS })
  }

  /** Reads, and rejects where a swap came in between: for what is kept for others who read themselves. */
  async readOnce<Result>(work: () => Promise<Result>): Promise<Result> {
    const before = await this.#count.before()
    const [outcome] = await Promise.allSettled([work()])
    if ((await this.#count.after()) !== before) throw new TablesSwapped('tables were swapped meanwhile')
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  }
}

/** Where nothing is ever swapped. */
export const NO_SWAPS: SwapCount = { before: async () => 0, after: () => 0 }
