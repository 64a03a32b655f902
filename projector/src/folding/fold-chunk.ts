import type { AnswerRow } from '../folds/fold.js'
import { foldNamed } from '../folds/folds.js'
import { type RowBlock, RowWriter } from '../rows/row-writer.js'

/** The engine's answers for a chunk by the name of the read: JSON arrays, one row per line. */
export type ChunkAnswers = Readonly<Record<string, Uint8Array>>

/** The folded rows of a chunk by table. */
export type ChunkRows = Readonly<Record<string, RowBlock>>

/** Runs a fold over one chunk: bytes in, bytes out; or `again` if the reads are inconsistent. */
export function foldChunk(name: string, answers: ChunkAnswers): ChunkRows | 'again' {
  const { fold, tables, copies = {} } = foldNamed(name)
  const rows = Object.fromEntries(Object.entries(answers).map(([read, bytes]) => [read, rowsOf(bytes)]))
  const writers = new Map<string, RowWriter>()
  const verdict = fold(rows, (table, values) => {
    let writer = writers.get(table)
    if (writer === undefined) {
      writer = new RowWriter(tables[table] ?? {})
      writers.set(table, writer)
    }
    writer.add(values)
  })
  if (verdict === 'again') return verdict
  const made = Object.fromEntries([...writers].map(([table, writer]) => [table, writer.take()]))
  for (const [table, copy] of Object.entries(copies)) {
    const block = made[table]
    if (block !== undefined) made[copy] = joined(block, made[copy])
  }
  return made
}

function joined(first: RowBlock, second: RowBlock | undefined): RowBlock {
  if (second === undefined) return first
  const native = new Uint8Array(Buffer.concat([first.native, second.native]))
  return { rows: first.rows + second.rows, columns: first.columns, native }
}

const NEWLINE = 0x0a
const COMMA = 0x2c

/** Parses each row when it is reached: every garbage collection would copy the rows of a whole chunk. */
function* rowsOf(answer: Uint8Array): Generator<AnswerRow> {
  const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.length)
  let start = bytes.indexOf(NEWLINE) + 1
  for (let end = bytes.indexOf(NEWLINE, start); start > 0 && end > 0; end = bytes.indexOf(NEWLINE, start)) {
    yield JSON.parse(bytes.toString('utf8', start, bytes[end - 1] === COMMA ? end - 1 : end))
    start = end + 1
  }
}
