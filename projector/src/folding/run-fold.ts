import { copiesOf, foldNamed } from '../folds/folds.js'
import { readRows } from '../rows/read-rows.js'
import type { Store } from '../store/operation.js'
import type { FoldProjection } from '../store/projection.js'
import {
  readBasis,
  readForFold,
  readKeys,
  readWeights,
  type StepInput,
  storeRows,
  type TouchedKey
} from '../store/step.js'
import type { ChunkAnswers, ChunkRows } from './fold-chunk.js'
import type { StepContext } from './step.js'

/** Attempts for a chunk with inconsistent reads; then the step fails, and is retried later. */
const AGAIN_MAX = 5

/**
 * Runs a projection of form `fold` over a range: keys → chunks; per chunk reads → fold → rows. While one chunk is
 * folded, the next one is read and the rows of the previous one are stored: chunks share no key. After a crash some
 * keys have new rows and others do not; the step is then repeated as a whole, and stores the same rows.
 */
export async function runFold(
  { store, folding, signal, isShared = false }: StepContext,
  projection: FoldProjection,
  made: StepInput
): Promise<void> {
  const { isLate, slice } = made
  // The fill of a rebuild, which runs slices, copies whole tables at its end.
  const copiedLater = slice === undefined ? [] : Object.values(copiesOf(projection))
  const reads = { ...projection.reads, ...(isLate ? projection.readsWhenLate : {}) }
  const readsApart = { ...reads, ...projection.readsApart }
  const readsAgain = { ...readsApart, ...projection.readsWhenLate }
  const chunks = chunksOf(await touchedKeys(store, projection, made))
  let answers: ChunkAnswers | undefined
  let rows: ChunkRows | undefined
  const basesRead: string[] = []
  // Two rounds more than chunks: the last one is folded, then stored.
  for (let n = 0; n < chunks.length + 2; n += 1) {
    signal.throwIfAborted()
    const [next, current, last] = [chunks[n], chunks[n - 1], chunks[n - 2]]
    if (next !== undefined) basesRead[n] = await basisAt(next)
    const [nextRead, folded, stored] = await Promise.allSettled([
      next === undefined ? undefined : read(next, next[0]?.isApart === true ? readsApart : reads),
      current === undefined || answers === undefined ? undefined : rowsOf(current, answers),
      rows === undefined || last === undefined ? undefined : storeUnlessOvertaken(last, rows, basesRead[n - 2] ?? '')
    ])
    // All are awaited, so that a second failure is not unhandled.
    answers = fulfilled(nextRead)
    rows = fulfilled(folded)
    fulfilled(stored)
  }

  async function read(
    chunk: readonly TouchedKey[],
    statements: Readonly<Record<string, string>>
  ): Promise<ChunkAnswers> {
    const found: Record<string, Uint8Array> = {}
    for (const [name, sql] of Object.entries(statements))
      found[name] = await store.do(readForFold, projection, { name, sql }, chunk)
    return found
  }
  async function rowsOf(chunk: readonly TouchedKey[], first: ChunkAnswers): Promise<ChunkRows> {
    let found = first
    for (let again = 0; again <= AGAIN_MAX; again += 1) {
      const made = await folding.fold(projection.name, found)
      if (made !== 'again') return made
      found = await read(chunk, readsApart)
    }
    throw new Error(overtaken(projection))
  }
  /** Returns a value that changes when events are added that another process may have used for rows. */
  async function basisAt(chunk: readonly TouchedKey[]): Promise<string> {
    return isShared ? await store.do(readBasis, projection, chunk) : ''
  }
  /** Stores rows, and recomputes those that another process overtook after they were read. */
  async function storeUnlessOvertaken(chunk: readonly TouchedKey[], made: ChunkRows, stood: string): Promise<void> {
    await storeAll(made)
    let before = stood
    let stored = made
    let reread = chunk
    for (let again = 0; Object.keys(stored).length > 0; again += 1) {
      const now = await basisAt(chunk)
      if (now === before) return
      if (again > AGAIN_MAX) throw new Error(overtaken(projection))
      before = now
      reread = sinceReplacedRows(projection, reread, stored)
      stored = await rowsOf(reread, await read(reread, readsAgain))
      await storeAll(stored)
    }
  }
  async function storeAll(made: ChunkRows): Promise<void> {
    for (const table of Object.keys(projection.into)) {
      const block = made[table]
      if (block !== undefined && !copiedLater.includes(table)) await store.do(storeRows, projection, table, block)
    }
  }
}

function overtaken({ name }: FoldProjection): string {
  return `Another process wrote to the input of ${name} during each of ${AGAIN_MAX + 1} reads; the step is repeated.`
}

function fulfilled<Value>(result: PromiseSettledResult<Value>): Value {
  if (result.status === 'rejected') throw result.reason
  return result.value
}

/**
 * Maximum weight of a chunk in rows, about 12 MB as JSON; three chunks are in memory. Its rows are one part of each
 * table, and half of this weight takes twice the merges. A heavier key is a chunk by itself.
 */
const CHUNK_WEIGHT_MAX = 100_000
/** Maximum number of keys in a chunk: they are looked up one by one. */
const CHUNK_KEYS_MAX = 256
/** Maximum number of keys that are weighed at once. */
const WEIGHED_KEYS_MAX = 10_000

/** Returns the touched keys in the order of chunks: those that are set apart last. */
export async function touchedKeys(
  store: Store,
  projection: FoldProjection,
  input: Omit<StepInput, 'isLate'>
): Promise<TouchedKey[]> {
  const keys = await store.do(readKeys, projection, input)
  const { weigh, readsApart } = projection
  // A single key is one chunk, whatever its weight.
  if (weigh === undefined || (keys.length < 2 && readsApart === undefined)) return keys
  const weighed = new Map<string, Pick<TouchedKey, 'weight' | 'isApart'>>()
  for (let n = 0; n < keys.length; n += WEIGHED_KEYS_MAX) {
    for (const { values, ...weight } of await store.do(readWeights, projection, keys.slice(n, n + WEIGHED_KEYS_MAX)))
      weighed.set(JSON.stringify(values), weight)
  }
  const all = keys.map((key) => ({ ...key, ...weighed.get(JSON.stringify(key.values)) }))
  return [...all.filter(({ isApart }) => isApart !== true), ...all.filter(({ isApart }) => isApart === true)]
}

/** Divides keys in order into chunks within the limits; keys that are set apart are never combined with others. */
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
