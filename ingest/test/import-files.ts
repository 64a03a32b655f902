import { gzipSync } from 'node:zlib'
import fc from 'fast-check'

/** The formatting of a file, which must not matter to an import. */
export type Writing = {
  readonly format: 'csv' | 'ndjson' | 'json'
  readonly lineEnd: '\n' | '\r\n'
  readonly hasBom: boolean
  readonly hasLastLineEnd: boolean
  readonly isGzip: boolean
  readonly isPretty: boolean
  /** Every cell in quotes, needed or not. */
  readonly isQuoted: boolean
  readonly columnOrder: 'given' | 'reversed'
  readonly hasOtherColumn: boolean
}

export const anyWriting: fc.Arbitrary<Writing> = fc.record({
  format: fc.constantFrom('csv', 'ndjson', 'json'),
  lineEnd: fc.constantFrom('\n', '\r\n'),
  hasBom: fc.boolean(),
  hasLastLineEnd: fc.boolean(),
  isGzip: fc.boolean(),
  isPretty: fc.boolean(),
  isQuoted: fc.boolean(),
  columnOrder: fc.constantFrom('given', 'reversed'),
  hasOtherColumn: fc.boolean()
})

/** Events (or rows without a measured value) as the bytes of a file. */
export function written(
  rows: readonly Readonly<Record<string, unknown>>[],
  columns: readonly string[],
  writing: Writing
): Buffer {
  const body = writing.format === 'csv' ? csvOf(rows, columns, writing) : jsonOf(rows, writing)
  const text = `${writing.hasBom ? '\uFEFF' : ''}${body}${writing.hasLastLineEnd ? writing.lineEnd : ''}`
  return writing.isGzip ? gzipSync(text) : Buffer.from(text)
}

/** Bytes in pieces of any size, as from a pipe. */
export async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

function csvOf(
  rows: readonly Readonly<Record<string, unknown>>[],
  columns: readonly string[],
  writing: Writing
): string {
  const named = writing.hasOtherColumn ? [...columns, 'remark, "odd"'] : columns
  const header = writing.columnOrder === 'given' ? named : named.toReversed()
  const lines = rows.map((row) => header.map((column) => cell(row[column] ?? '', writing.isQuoted)).join(','))
  return [header.map((name) => cell(name, writing.isQuoted)).join(','), ...lines].join(writing.lineEnd)
}

function cell(value: unknown, isQuoted: boolean): string {
  const text = Array.isArray(value) ? value.join(';') : String(value)
  return isQuoted || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function jsonOf(rows: readonly Readonly<Record<string, unknown>>[], writing: Writing): string {
  const objects = rows.map((row) => {
    const entries = Object.entries(writing.hasOtherColumn ? { ...row, remark: { odd: ['}', ']'] } } : row)
    return Object.fromEntries(writing.columnOrder === 'given' ? entries : entries.toReversed())
  })
  if (writing.format === 'ndjson') return objects.map((object) => JSON.stringify(object)).join(writing.lineEnd)
  return JSON.stringify(objects, null, writing.isPretty ? 2 : 0).replaceAll('\n', writing.lineEnd)
}
