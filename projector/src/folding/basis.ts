import { foldNamed } from '../folds/folds.js'
import { readRows } from '../rows/read-rows.js'
import type { FoldProjection } from '../store/projection.js'
import type { TouchedKey } from '../store/step.js'
import type { ChunkRows } from './fold-chunk.js'

/** Returns the same keys, each with the earliest instant whose stored rows may have replaced others. */
export function sinceReplacedRows(
  projection: FoldProjection,
  chunk: readonly TouchedKey[],
  stored: ChunkRows
): readonly TouchedKey[] {
  const { name, into, key } = projection
  const { rowsBeginAt } = foldNamed(name).basis
  if (rowsBeginAt === undefined) return chunk.map((each) => ({ ...each, sinceMs: 0 }))
  const since = new Map<string, number>()
  for (const [table, columns] of Object.entries(into)) {
    const block = columns.includes(rowsBeginAt) ? stored[table] : undefined
    for (const row of block === undefined ? [] : readRows(block).rows) {
      const values = JSON.stringify(Object.keys(key).map((column) => row[column]))
      const ms = Number(row[rowsBeginAt])
      since.set(values, Math.min(ms, since.get(values) ?? ms))
    }
  }
  return chunk.map((each) => ({
    ...each,
    sinceMs: Math.min(each.sinceMs, since.get(JSON.stringify(each.values)) ?? each.sinceMs)
  }))
}
