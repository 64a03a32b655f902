import { projectionsWithout } from '../../dead-letters/dead-letters.js'
import type { Tables } from '../../store/tables.js'
import type { Range } from '../range.js'
import { lateBatchesPendingFor, readLateRange, storeConsumed } from './late-batches.js'

/** Batches that are given at once at most. */
const BATCHES_MAX = 20

/** Late events for who follows projections by its own place in the log. */
export type LateReader = {
  /** Batches of these topics that every projection has taken and the reader has not, each with its events. */
  pending(
    topics: readonly string[]
  ): Promise<readonly { readonly id: string; readonly topic: string; readonly range: Range }[]>
  consumed(ids: readonly string[]): Promise<void>
}

/** @param taker what the reader is known by, unlike every other's */
export function lateReader(tables: Tables, taker: string): LateReader {
  return {
    async pending(topics) {
      const found: { id: string; topic: string; range: Range }[] = []
      for (const { id, topic } of await lateBatchesPendingFor(tables, taker, topics)) {
        if (found.length >= BATCHES_MAX) break
        if ((await projectionsWithout(tables, topic, [id])).length > 0) continue
        found.push({ id, topic, range: await readLateRange(tables, id) })
      }
      return found
    },
    consumed: (ids) =>
      storeConsumed(
        tables,
        ids.map((id) => ({ id, taker }))
      )
  }
}
