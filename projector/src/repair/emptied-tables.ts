import { foldInline } from '../folding/folding.js'
import { chunksOf, touchedKeys } from '../folding/touched-keys.js'
import { Generations } from '../generations/generations.js'
import { wholeRange } from '../rebuild/cost.js'
import { Checkpoints } from '../store/checkpoint.js'
import { countRows } from '../store/comparison.js'
import type { Store } from '../store/operation.js'
import { type FoldProjection, type Projection, tablesOf } from '../store/projection.js'
import type { Range } from '../store/range.js'
import { hasRows, readForFold } from '../store/step.js'

/** A read table without rows, by the name in statements and by the engine's. */
export type EmptiedTable = { readonly projection: string; readonly table: string; readonly engineTable: string }

/**
 * Finds the tables without rows whose projections make rows of the events that they have consumed. Checkpoints are read first, and events
 * last: steps store rows before the checkpoint, and an erasure deletes events before rows.
 */
export async function emptiedTables(store: Store, all: readonly Projection[]): Promise<EmptiedTable[]> {
  const { projections, names } = await new Generations(store, all).current()
  const current = store.with({ names })
  const checkpoints = await Checkpoints.read(current)
  const emptied: EmptiedTable[] = []
  for (const projection of projections) {
    const { name } = projection
    const range = wholeRange(projection, checkpoints)
    if (range.length === 0) continue
    const empty = new Set<string>()
    for (const table of tablesOf(projection))
      if ((await current.do(countRows, names.get(table) ?? table)) === 0) empty.add(table)
    if (empty.size === 0) continue
    const made = await tablesWithRows(current, projection, range, empty)
    for (const table of made) emptied.push({ projection: name, table, engineTable: names.get(table) ?? table })
  }
  return emptied
}

/** Returns those of the tables that get rows of the events of a range. */
async function tablesWithRows(
  store: Store,
  projection: Projection,
  range: Range,
  tables: ReadonlySet<string>
): Promise<readonly string[]> {
  if (projection.form !== 'fold') return (await store.do(hasRows, projection, range)) ? [...tables] : []
  return await foldedTables(store, projection, range, tables)
}

async function foldedTables(
  store: Store,
  projection: FoldProjection,
  range: Range,
  tables: ReadonlySet<string>
): Promise<readonly string[]> {
  const { name, fold = name, reads, readsApart } = projection
  const folding = foldInline()
  const made = new Set<string>()
  for (const chunk of chunksOf(await touchedKeys(store, projection, { range, isLate: false }))) {
    const answers: Record<string, Uint8Array> = {}
    for (const [read, sql] of Object.entries({ ...reads, ...readsApart }))
      answers[read] = await store.do(readForFold, projection, { name: read, sql }, chunk)
    const rows = await folding.fold(fold, answers)
    for (const table of Object.keys(rows === 'again' ? {} : rows)) if (tables.has(table)) made.add(table)
    if (made.size === tables.size) break
  }
  return [...made]
}
