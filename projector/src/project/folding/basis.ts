import { foldNamed } from '../../folds/folds.js'
import type { TouchedKey } from '../../store/step.js'
import type { FoldProjection } from '../projection.js'
import type { ChunkRows } from './fold-chunk.js'

/** Returns the same keys, each with the earliest instant whose stored rows may have replaced others. */
export function sinceReplacedRows(
  projection: FoldProjection,
  chunk: readonly TouchedKey[],
  stored: ChunkRows
): readonly TouchedKey[] {
  const { name, fold = name, into, key } = projection
  const { rowsBeginAt } = foldNamed(fold).basis
  if (rowsBeginAt === undefined) return chunk.map((each) => ({ ...each, sinceMs: 0 }))
  const since = new Map<string, number>()
  for (const [table, columns] of Object.entries(into)) {
    const at = columns.indexOf(rowsBeginAt)
    const lines = Buffer.from(stored[table]?.body ?? []).toString()
    for (const line of at < 0 ? [] : lines.split('\n').filter((each) => each !== '')) {
      const row = JSON.parse(line) as (string | number)[]
      const values = JSON.stringify(Object.keys(key).map((column) => row[columns.indexOf(column)]))
      const ms = Date.parse(`${String(row[at]).replace(' ', 'T')}Z`)
      since.set(values, Math.min(ms, since.get(values) ?? ms))
    }
  }
  return chunk.map((each) => ({
    ...each,
    sinceMs: Math.min(each.sinceMs, since.get(JSON.stringify(each.values)) ?? each.sinceMs)
  }))
}
