import type { Tables } from '../../store/tables.js'
import { type FoldProjection, keysStatement, type Statement } from '../projection.js'
import type { StepInput } from '../step.js'

/** A key that the range touched. */
export type TouchedKey = {
  /** Its columns' values, in the order of the projection's `key`. */
  readonly values: readonly (string | number)[]
  readonly sinceMs: number
  readonly weight: number
  /** True when it is read by `readsApart`. */
  readonly isApart?: boolean
}

/** Rows that a chunk costs at most, some 5 MB as JSON; three chunks are held. A single key that costs more is a chunk by itself. */
const CHUNK_WEIGHT_MAX = 50_000
/** Keys of a chunk at most: they are sought one by one. */
const CHUNK_KEYS_MAX = 256
/** Keys that are weighed at once. */
const WEIGHED_KEYS_MAX = 10_000

/** The keys that what was made touched, in the order in which chunks take them: those set apart last. */
export async function touchedKeys(
  tables: Tables,
  projection: FoldProjection,
  { range, slice }: StepInput
): Promise<TouchedKey[]> {
  const { sql, parameters } = keysStatement(projection, range, slice)
  const columns = Object.keys(projection.key)
  const valuesOf = (row: Record<string, unknown>) =>
    columns.map((column) => (projection.key[column] === 'String' ? String(row[column]) : Number(row[column])))
  const keys = (await tables.rows(sql, parameters)).map((row) => ({
    values: valuesOf(row),
    sinceMs: Number(row.since_ms),
    weight: Number(row.events)
  }))
  const { weigh, readsApart } = projection
  // One key is one chunk, whatever it weighs.
  if (weigh === undefined || (keys.length < 2 && readsApart === undefined)) return keys
  const weighed = new Map<string, Pick<TouchedKey, 'weight' | 'isApart'>>()
  for (let n = 0; n < keys.length; n += WEIGHED_KEYS_MAX) {
    const statement = bound(projection, weigh, keys.slice(n, n + WEIGHED_KEYS_MAX))
    for (const row of await tables.rows(statement.sql, statement.parameters)) {
      const isApart = Boolean(row.is_apart)
      weighed.set(JSON.stringify(valuesOf(row)), { weight: Number(row.weight), isApart })
    }
  }
  const all = keys.map((key) => ({ ...key, ...weighed.get(JSON.stringify(key.values)) }))
  return [...all.filter(({ isApart }) => isApart !== true), ...all.filter(({ isApart }) => isApart === true)]
}

/** Keys in order, as many together as the bounds allow; those set apart never with others. */
export function chunksOf(keys: readonly TouchedKey[]): TouchedKey[][] {
  const chunks: TouchedKey[][] = []
  let weight = 0
  for (const key of keys) {
    const last = chunks.at(-1)
    const isOther = key.isApart !== last?.[0]?.isApart
    if (last === undefined || isOther || last.length >= CHUNK_KEYS_MAX || weight + key.weight > CHUNK_WEIGHT_MAX) {
      chunks.push([key])
      weight = key.weight
    } else {
      last.push(key)
      weight += key.weight
    }
  }
  return chunks
}

/** A statement of a fold with its keys bound; its text is the same for any keys. */
export function bound({ key }: FoldProjection, sql: string, keys: readonly TouchedKey[]): Statement {
  const columns = Object.entries(key)
  const arrays = columns.map(([column, type]) => `{${column}: Array(${type})}`)
  const parameters: Record<string, unknown> = { since_ms: keys.map(({ sinceMs }) => sinceMs) }
  for (const [n, [column]] of columns.entries()) parameters[column] = keys.map(({ values }) => values[n])
  return {
    sql: sql
      .replaceAll('{keys}', arrays.length === 1 ? arrays.join() : `arrayZip(${arrays.join(', ')})`)
      .replaceAll('{since_ms}', '{since_ms: Array(Int64)}'),
    parameters
  }
}
