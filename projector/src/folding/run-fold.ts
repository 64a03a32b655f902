import type { Made, Making } from '../make-rows.js'
import { type FoldProjection, keysStatement, type Statement } from '../projection.js'
import type { Tables } from '../tables.js'
import type { ChunkAnswers, ChunkRows } from './fold-chunk.js'

/** A key that the range touched. */
export type TouchedKey = {
  /** Its columns' values, in the order of the projection's `key`. */
  readonly values: readonly (string | number)[]
  readonly sinceMs: number
  readonly weight: number
  /** True when it is read by `readsApart`. */
  readonly isApart?: boolean
}

/** Rows that a chunk costs at most, about 15 MB as JSON; a single key that costs more is a chunk by itself. */
const CHUNK_WEIGHT_MAX = 100_000
/** Keys of a chunk at most: they are sought one by one. */
const CHUNK_KEYS_MAX = 256
/** So often a chunk is read again whose reads do not fit together; then the step fails, and is made again later. */
const AGAIN_MAX = 5
/** Keys that are weighed at once. */
const WEIGHED_KEYS_MAX = 10_000

/**
 * Runs a projection of form `fold` over a range: keys → chunks; per chunk reads → fold → rows. While one chunk is folded,
 * the rows of the one before are stored. A crash in between leaves some keys' rows written and others' not; the step is then
 * repeated whole, and makes the same rows again.
 */
export async function runFold(
  { tables, folding, signal }: Making,
  projection: FoldProjection,
  made: Made
): Promise<void> {
  const { isLate } = made
  const reads = { ...projection.reads, ...(isLate ? projection.readsWhenLate : {}) }
  const readsApart = { ...reads, ...projection.readsApart }
  let before: ChunkRows | undefined
  for (const chunk of chunksOf(await touchedKeys(tables, projection, made))) {
    signal.throwIfAborted()
    const answers = await read(chunk, chunk[0]?.isApart === true ? readsApart : reads)
    before = await whileStoring(before, rowsOf(chunk, answers))
  }
  if (before !== undefined) await store(before)

  async function read(
    chunk: readonly TouchedKey[],
    statements: Readonly<Record<string, string>>
  ): Promise<ChunkAnswers> {
    const answers: Record<string, Uint8Array> = {}
    for (const [name, sql] of Object.entries(statements)) {
      const statement = bound(projection, sql, chunk)
      answers[name] = await tables.json(statement.sql, statement.parameters)
    }
    return answers
  }
  async function rowsOf(chunk: readonly TouchedKey[], first: ChunkAnswers): Promise<ChunkRows> {
    let answers = first
    for (let again = 0; again <= AGAIN_MAX; again += 1) {
      const rows = await folding.fold(projection.fold ?? projection.name, answers)
      if (rows !== 'again') return rows
      answers = await read(chunk, readsApart)
    }
    throw new Error(
      `Another process wrote to what ${projection.name} reads each of the ${AGAIN_MAX + 1} times it was read; the step is made again.`
    )
  }
  async function whileStoring(rows: ChunkRows | undefined, folded: Promise<ChunkRows>): Promise<ChunkRows> {
    // Both are waited for, or the one that fails second would be nobody's.
    const [next, stored] = await Promise.allSettled([folded, rows === undefined ? undefined : store(rows)])
    if (stored.status === 'rejected') throw stored.reason
    if (next.status === 'rejected') throw next.reason
    return next.value
  }
  async function store(rows: ChunkRows): Promise<void> {
    for (const [table, columns] of Object.entries(projection.into)) {
      const lines = rows[table]
      if (lines !== undefined) await tables.insert(table, columns, lines.body)
    }
  }
}

async function touchedKeys(tables: Tables, projection: FoldProjection, { range, slice }: Made): Promise<TouchedKey[]> {
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
