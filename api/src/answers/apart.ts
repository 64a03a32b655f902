import { Refusal } from '@gamenet/schemas'

/*
 * exchange  the tables that a rebuild filled take the places of those that served: some statements, within milliseconds.
 *           What is asked before and behind one, or while it is under way, may be told by old and new tables
 * apart     read wholly before an exchange, or wholly behind it
 * count     rises when an exchange begins, and when it has ended
 */

/** What is known of exchanges. */
export type ExchangeCount = {
  /** The count once no exchange is under way, and none that has ended is unknown to what is kept in memory. */
  before(): Promise<number>
  /** The count at an instant behind the call. */
  after(): Promise<number> | number
}

/** Exchanges are rare, and the next one waits for an operator. */
const TRIES_MAX = 5
const BUSY_RETRY_SECONDS = 1

/** An exchange came in between; nothing that was read counts. */
class Exchanged extends Error {}

/** Sees to it that what is read of several tables, or in several statements, is read apart from exchanges. */
export class Apart {
  readonly #count: ExchangeCount

  constructor(count: ExchangeCount) {
    this.#count = count
  }

  /** Reads, again where an exchange came in between. What it rejects with was met apart from exchanges too. */
  async read<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      try {
        return await this.once(work)
      } catch (error) {
        if (!(error instanceof Exchanged)) throw error
      }
    }
    throw new Refusal('engine_busy', [], { retryAfterSeconds: BUSY_RETRY_SECONDS })
  }

  /** Reads, and rejects where an exchange came in between: for what is kept for others who read themselves. */
  async once<Result>(work: () => Promise<Result>): Promise<Result> {
    const before = await this.#count.before()
    const [outcome] = await Promise.allSettled([work()])
    if ((await this.#count.after()) !== before) throw new Exchanged('tables were exchanged meanwhile')
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  }
}

/** Where nothing is ever exchanged. */
export const NO_EXCHANGES: ExchangeCount = { before: async () => 0, after: () => 0 }
