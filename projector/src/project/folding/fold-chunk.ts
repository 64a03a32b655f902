import { foldNamed } from '../../folds/folds.js'
import { type RowBlock, RowWriter } from '../../rows/row-writer.js'
import type { AnswerRow } from './fold.js'

/** The engine's answers for a chunk: JSON arrays by the name of the read. */
export type ChunkAnswers = Readonly<Record<string, Uint8Array>>

/** The folded rows of a chunk by table. */
export type ChunkRows = Readonly<Record<string, RowBlock>>

/** Runs a fold over one chunk: bytes in, bytes out; or `again` if the reads are inconsistent. */
export function foldChunk(name: string, answers: ChunkAnswers): ChunkRows | 'again' {
  const { fold, tables } = foldNamed(name)
  const parsed: Record<string, readonly AnswerRow[]> = {}
  for (const [read, bytes] of Object.entries(answers)) parsed[read] = JSON.parse(Buffer.from(bytes).toString())
  const writers = new Map<string, RowWriter>()
  const verdict = fold(parsed, (table, values) => {
    let writer = writers.get(table)
    if (writer === undefined) {
      writer = new RowWriter(tables[table] ?? {})
      writers.set(table, writer)
    }
    writer.add(values)
  })
  if (verdict === 'again') return verdict
  return Object.fromEntries([...writers].map(([table, writer]) => [table, writer.take()]))
}
