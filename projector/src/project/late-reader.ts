import { notTaken } from '../dead-letters/dead-letters.js'
import type { Tables } from '../store/tables.js'
import { readLateRange, storeTaken, untakenBy } from './late-batches.js'
import type { Range } from './range.js'

/** Batches that are given at once at most. */
const BATCHES_MAX = 20

/** Late events for who follows projections by its own place in the log. */
export type LateReader = {
  /** Batches of these topics that every projection has taken and the reader has not, each with its events. */
  untaken(
    topics: readonly string[]
  ): Promise<readonly { readonly id: string; readonly topic: string; readonly range: Range }[]>
  taken(ids: readonly string[]): Promise<void>
}

/** @param taker what the reader is known by, unlike every other's */
export function lateReader(tables: Tables, taker: string): LateReader {
  return {
    async untaken(topics) {
      const found: { id: string; topic: string; range: Range }[] = []
      for (const { id, topic } of await untakenBy(tables, taker, topics)) {
        if (found.length >= BATCHES_MAX) break
        if ((await notTaken(tables, topic, [id])).length > 0) continue
        found.push({ id, topic, range: await readLateRange(tables, id) })
      }
      return found
    },
    taken: (ids) =>
      storeTaken(
        tables,
        ids.map((id) => ({ id, taker }))
      )
  }
}
