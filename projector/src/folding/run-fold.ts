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

/** Rows that a chunk costs at most, some 5 MB as JSON; three chunks are held. A single key that costs more is a chunk by itself. */
const CHUNK_WEIGHT_MAX = 50_000
/** Keys of a chunk at most: they are sought one by one. */
const CHUNK_KEYS_MAX = 256
/** So often a chunk is read again whose reads do not fit together; then the step fails, and is made again later. */
const AGAIN_MAX = 5
/** Keys that are weighed at once. */
const WEIGHED_KEYS_MAX = 10_000

/**
 * The table that folds read which go on from what they have stored and write no row that is right already, by the fold: a process
 * that was overtaken between reading and storing has stored what the other one could not see.
 */
const STANDS_ON: Readonly<Record<string, string>> = { 'match-session': 'match_list' }
/** Where a row begins of what such a fold stores. */
const BEGINS_AT = 'first_seen'

/**
 * Runs a projection of form `fold` over a range: keys → chunks; per chunk reads → fold → rows. While one chunk is folded, the next
 * one is read and the rows of the one before are stored: chunks share no key. A crash in between leaves some keys' rows written and
 * others' not; the step is then repeated whole, and makes the same rows again.
 */
export async function runFold(
  { tables, folding, signal, isShared = false }: Making,
  projection: FoldProjection,
  made: Made
): Promise<void> {
  const { isLate } = made
  const reads = { ...projection.reads, ...(isLate ? projection.readsWhenLate : {}) }
  const readsApart = { ...reads, ...projection.readsApart }
  const standsOn = isShared ? STANDS_ON[projection.fold ?? projection.name] : undefined
  const chunks = chunksOf(await touchedKeys(tables, projection, made))
  let answers: ChunkAnswers | undefined
  let rows: ChunkRows | undefined
  const stoodAt: string[] = []
  // Two rounds longer than there are chunks: the last one is folded, then stored.
  for (let n = 0; n < chunks.length + 2; n += 1) {
    signal.throwIfAborted()
    const [next, current, last] = [chunks[n], chunks[n - 1], chunks[n - 2]]
    if (next !== undefined) stoodAt[n] = await standing(next)
    const [nextRead, folded, stored] = await Promise.allSettled([
      next === undefined ? undefined : read(next, next[0]?.isApart === true ? readsApart : reads),
      current === undefined || answers === undefined ? undefined : rowsOf(current, answers),
      rows === undefined || last === undefined ? undefined : storeStanding(last, rows, stoodAt[n - 2] ?? '')
    ])
    // All are waited for, or what fails second would be nobody's.
    answers = fulfilled(nextRead)
    rows = fulfilled(folded)
    fulfilled(stored)
  }

  async function read(
    chunk: readonly TouchedKey[],
    statements: Readonly<Record<string, string>>
  ): Promise<ChunkAnswers> {
    const found: Record<string, Uint8Array> = {}
    for (const [name, sql] of Object.entries(statements)) {
      const statement = bound(projection, sql, chunk)
      found[name] = await tables.json(statement.sql, statement.parameters)
    }
    return found
  }
  async function rowsOf(chunk: readonly TouchedKey[], first: ChunkAnswers): Promise<ChunkRows> {
    let found = first
    for (let again = 0; again <= AGAIN_MAX; again += 1) {
      const lines = await folding.fold(projection.fold ?? projection.name, found)
      if (lines !== 'again') return lines
      found = await read(chunk, readsApart)
    }
    throw new Error(overtaken(projection))
  }
  /** Tells whether something came that another process may have made rows of. */
  async function standing(chunk: readonly TouchedKey[]): Promise<string> {
    if (standsOn === undefined) return ''
    const columns = Object.keys(projection.key).map((column) => `s.${column}`)
    const { sql, parameters } = bound(
      projection,
      `SELECT count() AS rows, max(s.position) AS newest FROM ${standsOn} AS s WHERE (${columns.join(', ')}) IN {keys}`,
      chunk
    )
    return JSON.stringify(await tables.rows(sql, parameters))
  }
  /** Stores rows, and what is to be put right of them since another process went ahead after they were read. */
  async function storeStanding(chunk: readonly TouchedKey[], lines: ChunkRows, stood: string): Promise<void> {
    await store(lines)
    let before = stood
    let stored = lines
    let reread = chunk
    for (let again = 0; Object.keys(stored).length > 0; again += 1) {
      const now = await standing(chunk)
      if (now === before) return
      if (again > AGAIN_MAX) throw new Error(overtaken(projection))
      before = now
      reread = reachingBackTo(projection, reread, stored)
      stored = await rowsOf(reread, await read(reread, readsApart))
      await store(stored)
    }
  }
  async function store(lines: ChunkRows): Promise<void> {
    for (const [table, columns] of Object.entries(projection.into)) {
      const body = lines[table]?.body
      if (body !== undefined) await tables.insert(table, columns, body)
    }
  }
}

/** The same keys, each since the earliest instant that the rows of it begin at, which may have replaced others' there. */
function reachingBackTo(
  { into, key }: FoldProjection,
  chunk: readonly TouchedKey[],
  stored: ChunkRows
): readonly TouchedKey[] {
  const since = new Map<string, number>()
  for (const [table, columns] of Object.entries(into)) {
    const at = columns.indexOf(BEGINS_AT)
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

function overtaken({ name }: FoldProjection): string {
  return `Another process wrote to what ${name} reads each of the ${AGAIN_MAX + 1} times it was read; the step is made again.`
}

function fulfilled<Value>(result: PromiseSettledResult<Value>): Value {
  if (result.status === 'rejected') throw result.reason
  return result.value
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
