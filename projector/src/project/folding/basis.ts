import { foldNamed } from '../../folds/folds.js'
import type { FoldProjection } from '../projection.js'
import type { FoldBasis } from './fold.js'
import type { ChunkRows } from './fold-chunk.js'
import type { TouchedKey } from './touched-keys.js'

/**
 * Asks what there is of `{keys}` that rows are made of; the answer differs when something came, in whatever order, and
 * not when parts were merged.
 */
export function basisStatement(projection: FoldProjection): string {
  const columns = Object.keys(projection.key).map((column) => `s.${column}`)
  const { table } = basisOf(projection)
  return `SELECT count() AS rows, max(s.position) AS newest FROM ${table} AS s FINAL WHERE (${columns.join(', ')}) IN {keys}`
}

/** The same keys, each since the earliest instant whose stored rows may have replaced others. */
export function sinceReplacedRows(
  projection: FoldProjection,
  chunk: readonly TouchedKey[],
  stored: ChunkRows
): readonly TouchedKey[] {
  const { into, key } = projection
  const { rowsBeginAt } = basisOf(projection)
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

function basisOf({ name, fold = name }: FoldProjection): FoldBasis {
  return foldNamed(fold).basis
}
