import type { Store } from '../store/operation.js'
import { readTableUuids } from '../store/table.js'
import type { RebuildContext } from './context.js'
import { type RebuildRecord, readRebuilds } from './rebuild-record.js'
import { dropTables } from './rebuild-tables.js'
import { isInterrupted, resumeSwap, tablesToDrop } from './swap.js'

/** Of these nothing is to be left but the record. */
function isOver({ state }: RebuildRecord): boolean {
  return state === 'cancelled' || state === 'rolled-back' || state === 'dropped'
}

/** Rejects while a swap of tables is under way, or cut off: nobody could tell which tables will serve. */
export async function requireNoSwap(store: Store): Promise<void> {
  if ((await readRebuilds(store)).some(isInterrupted))
    throw new Error('A swap of tables was cut off; it is ended first.')
}

/** Ends what was cut off half-way, before anything else is written. */
export class Recovery {
  readonly #context: RebuildContext
  #isDone = false
  /** Work under way that swaps or drops tables. */
  #underWay = 0

  constructor(context: RebuildContext) {
    this.#context = context
  }

  /** Ends swaps and drops that a crash cut off. Before the first pass; tried again when it rejects. */
  async recover(): Promise<void> {
    if (this.#isDone) return
    const { store, passLock } = this.#context
    const records = await readRebuilds(store)
    const remains = records.filter(isOver).flatMap(tablesToDrop)
    await dropTables(store, (await store.do(readTableUuids, remains)).keys())
    if (records.some(isInterrupted)) {
      await passLock.exclusive(async () => {
        // Another process may be at it, or have ended it by now.
        for (const record of (await readRebuilds(store)).filter(isInterrupted)) await resumeSwap(this.#context, record)
      })
    }
    // The next pass sees this failure, before {@link around} learns of it.
    this.#isDone = this.#underWay === 0
  }

  /**
   * Rejects while a swap is cut off, which the next {@link recover} ends: what were written now would be put away with the
   * tables that were to go, and checkpoints would say that it serves. For work beside which no swap begins.
   */
  async requireNoInterruptedSwap(): Promise<void> {
    await requireNoSwap(this.#context.store).catch((error: unknown) => {
      this.#isDone = false
      throw error
    })
  }

  /** Does work that swaps or drops tables: what fails half-way is ended before the next pass. */
  async around<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#underWay += 1
    this.#isDone = false
    try {
      return await work()
    } catch (error) {
      this.#context.runner.wake()
      throw error
    } finally {
      this.#underWay -= 1
    }
  }
}
