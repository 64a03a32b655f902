import { readBasis, readForFold, type StepInput, storeRows, type TouchedKey } from '../../store/step.js'
import type { FoldProjection } from '../projection.js'
import type { StepContext } from '../step.js'
import { sinceReplacedRows } from './basis.js'
import type { ChunkAnswers, ChunkRows } from './fold-chunk.js'
import { chunksOf, touchedKeys } from './touched-keys.js'

/** So often a chunk is read again whose reads do not fit together; then the step fails, and is made again later. */
const AGAIN_MAX = 5

/**
 * Runs a projection of form `fold` over a range: keys → chunks; per chunk reads → fold → rows. While one chunk is folded, the next
 * one is read and the rows of the one before are stored: chunks share no key. A crash in between leaves some keys' rows written and
 * others' not; the step is then repeated whole, and makes the same rows again.
 */
export async function runFold(
  { store, folding, signal, isShared = false }: StepContext,
  projection: FoldProjection,
  made: StepInput
): Promise<void> {
  const { isLate } = made
  const reads = { ...projection.reads, ...(isLate ? projection.readsWhenLate : {}) }
  const readsApart = { ...reads, ...projection.readsApart }
  const readsAgain = { ...readsApart, ...projection.readsWhenLate }
  const chunks = chunksOf(await touchedKeys(store, projection, made))
  let answers: ChunkAnswers | undefined
  let rows: ChunkRows | undefined
  const basesRead: string[] = []
  // Two rounds longer than there are chunks: the last one is folded, then stored.
  for (let n = 0; n < chunks.length + 2; n += 1) {
    signal.throwIfAborted()
    const [next, current, last] = [chunks[n], chunks[n - 1], chunks[n - 2]]
    if (next !== undefined) basesRead[n] = await basisAt(next)
    const [nextRead, folded, stored] = await Promise.allSettled([
      next === undefined ? undefined : read(next, next[0]?.isApart === true ? readsApart : reads),
      current === undefined || answers === undefined ? undefined : rowsOf(current, answers),
      rows === undefined || last === undefined ? undefined : storeUnlessOvertaken(last, rows, basesRead[n - 2] ?? '')
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
      found[name] = await store.do(readForFold, projection, { name, sql }, chunk)
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
  /** Differs when something came that another process may have made rows of. */
  async function basisAt(chunk: readonly TouchedKey[]): Promise<string> {
    return isShared ? await store.do(readBasis, projection, chunk) : ''
  }
  /** Stores rows, and what is to be put right of them since another process went ahead after they were read. */
  async function storeUnlessOvertaken(chunk: readonly TouchedKey[], lines: ChunkRows, stood: string): Promise<void> {
    await storeAll(lines)
    let before = stood
    let stored = lines
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
  async function storeAll(lines: ChunkRows): Promise<void> {
    for (const table of Object.keys(projection.into)) {
      const body = lines[table]?.body
      if (body !== undefined) await store.do(storeRows, projection, table, body)
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
