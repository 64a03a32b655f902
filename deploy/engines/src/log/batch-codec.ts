import { promisify } from 'node:util'
import { deflate, deflateSync, inflate, inflateSync } from 'node:zlib'
import type { LogMessage, LogRecord } from '@gamenet/schemas'
import { ByteReader, ByteWriter, readRuns, writeRuns } from './byte-column.js'
import { DICTIONARY } from './dictionary.js'
import { readTextColumn, type TextColumn, writeTextColumn } from './text-column.js'

/*
 * A batch of messages as bytes: by columns (keys, each header, values), then deflate. Rows with the same header
 * names, in the same order, are one shape; a shape has its own columns. Columns that others repeat come first.
 */

/** Below this size deflate takes less time than handing the bytes to another thread. */
const INLINE_BYTES_MAX = 8192
/** The first bytes of a stored batch, see {@link BatchFrame}. */
export const FRAME_BYTES = 22
const FRAME_FORMAT = 1
const RAW_BYTES_MAX = 0xffff_ffff

const deflateAsync = promisify<Buffer, object, Buffer>(deflate)
const inflateAsync = promisify<Buffer, object, Buffer>(inflate)

/** What is known of a stored batch without unpacking it. */
export type BatchFrame = {
  readonly records: number
  /** When it was appended, in milliseconds since 1970. */
  readonly appendedAtMs: number
  /** Stored bytes of all batches of its partition that were ever appended before it. */
  readonly bytesBefore: number
}

/**
 * A batch packed and compressed, with room for its frame in front. Texts come back exactly as far as UTF-8 can hold
 * them: half a surrogate pair becomes U+FFFD, as in Kafka.
 */
export async function packBatch(messages: readonly LogMessage[]): Promise<Buffer> {
  const raw = columnsOf(messages)
  if (raw.length > RAW_BYTES_MAX) throw new RangeError(`a batch of ${raw.length} bytes is larger than ${RAW_BYTES_MAX}`)
  const options = { level: 6, dictionary: DICTIONARY, chunkSize: Math.max(64, raw.length) }
  const packed = raw.length <= INLINE_BYTES_MAX ? deflateSync(raw, options) : await deflateAsync(raw, options)
  const batch = Buffer.allocUnsafe(FRAME_BYTES + packed.length)
  batch.fill(0, 0, FRAME_BYTES)
  batch.writeUInt8(FRAME_FORMAT, 0)
  batch.writeUInt32LE(messages.length, 1)
  batch.writeUInt32LE(raw.length, 5)
  packed.copy(batch, FRAME_BYTES)
  return batch
}

/** Puts in what is known only when the batch is stored. */
export function stampBatch(batch: Buffer, stamp: Pick<BatchFrame, 'appendedAtMs' | 'bytesBefore'>): void {
  batch.writeUIntLE(stamp.appendedAtMs, 9, 6)
  batch.writeUIntLE(stamp.bytesBefore, 15, 6)
}

/** The frame of a stored batch. Throws when the bytes are none, or of a newer program. */
export function frameOf(batch: Buffer): BatchFrame {
  const format = batch[0]
  if (format !== FRAME_FORMAT || batch.length < FRAME_BYTES) {
    throw new Error(`a batch of the log has format ${format ?? 'none'}, expected ${FRAME_FORMAT}: use a newer program`)
  }
  return {
    records: batch.readUInt32LE(1),
    appendedAtMs: batch.readUIntLE(9, 6),
    bytesBefore: batch.readUIntLE(15, 6)
  }
}

/** The records of a batch, made as they are asked for: 8,192 of them at once would outlive the young generation. */
export type StoredRecords = {
  readonly count: number
  /** The records from index `from` up to `to`, counted from 0. */
  slice(from: number, to: number): LogRecord[]
}

/** Unpacks a stored batch whose first record has the offset `first`. Throws if the bytes are damaged. */
export async function unpackBatch(batch: Buffer, first: number): Promise<StoredRecords> {
  return recordsOf(new ByteReader(await inflated(batch)), frameOf(batch).records, first)
}

/**
 * Throws if the bytes of a stored batch are damaged. The checksum that deflate adds covers all columns, so that they are not read
 * where the batch has one shape, whose count of rows comes first.
 */
export async function checkBatch(batch: Buffer): Promise<void> {
  const { records } = frameOf(batch)
  const raw = await inflated(batch)
  const reader = new ByteReader(raw)
  if (reader.varint() === 1) requireCount(reader.varint(), records)
  else recordsOf(new ByteReader(raw), records, 0)
}

/** The columns of a stored batch, by their checksum. */
async function inflated(batch: Buffer): Promise<Buffer> {
  // Throws for another format.
  frameOf(batch)
  const rawBytes = batch.readUInt32LE(5)
  const packed = batch.subarray(FRAME_BYTES)
  const options = { dictionary: DICTIONARY, chunkSize: Math.max(64, rawBytes), maxOutputLength: Math.max(1, rawBytes) }
  const raw = rawBytes <= INLINE_BYTES_MAX ? inflateSync(packed, options) : await inflateAsync(packed, options)
  if (raw.length !== rawBytes)
    throw new Error(`a batch of the log unpacks to ${raw.length} bytes, expected ${rawBytes}`)
  return raw
}

function requireCount(held: number, records: number): void {
  if (held !== records) throw new RangeError(`the batch holds ${held} messages, expected ${records}`)
}

type Shape = { readonly names: readonly string[]; readonly rows: LogMessage[] }

function columnsOf(messages: readonly LogMessage[]): Buffer {
  const shapes: Shape[] = []
  const chosen: number[] = []
  let last = 0
  for (const message of messages) {
    const names = Object.keys(message.headers)
    if (!isShape(shapes[last], names)) {
      last = shapes.findIndex((shape) => isShape(shape, names))
      if (last < 0) last = shapes.push({ names, rows: [] }) - 1
    }
    shapes[last]?.rows.push(message)
    chosen.push(last)
  }
  const writer = new ByteWriter()
  writer.varint(shapes.length)
  for (const shape of shapes) writeShape(writer, shape)
  if (shapes.length > 1) writeRuns(writer, chosen)
  return writer.bytes()
}

function isShape(shape: Shape | undefined, names: readonly string[]): boolean {
  return shape !== undefined && shape.names.length === names.length && shape.names.every((name, i) => name === names[i])
}

function writeShape(writer: ByteWriter, { names, rows }: Shape): void {
  writer.varint(rows.length)
  writer.varint(names.length)
  for (const name of names) writer.text(name)
  const columns = [rows.map((row) => row.key)]
  writeTextColumn(writer, columns[0] ?? [], [])
  for (const column of columnOrder(names)) {
    const name = names[column]
    const texts = rows.map((row) => (name === undefined ? row.value : (row.headers[name] ?? '')))
    writeTextColumn(writer, texts, columns)
    columns.push(texts)
  }
}

/** Headers from the last to the first, since ids are made of what stands behind them (`ce_time`); then the value. */
function columnOrder(names: readonly string[]): number[] {
  return [...names.keys()].reverse().concat(names.length)
}

type StoredShape = {
  readonly rows: number
  readonly key: TextColumn
  readonly value: TextColumn
  /** The headers that are the same in all rows; the others are empty here, so that a copy has every name in its place. */
  readonly template: Readonly<Record<string, string>>
  readonly varying: readonly { readonly name: string; readonly column: TextColumn }[]
}

function recordsOf(reader: ByteReader, count: number, first: number): StoredRecords {
  const shapes: StoredShape[] = []
  for (let left = reader.varint(); left > 0; left -= 1) shapes.push(readShape(reader))
  const chosen = shapes.length > 1 ? readRuns(reader, count) : undefined
  const used = shapes.map(() => 0)
  const rows = chosen?.map((index) => {
    const row = used[index] ?? 0
    used[index] = row + 1
    return row
  })
  const held = shapes.reduce((sum, shape) => sum + shape.rows, 0)
  requireCount(held, count)
  if (count > 0 && (chosen ?? [0]).some((index) => shapes[index] === undefined)) {
    throw new RangeError('the batch names a shape that it does not hold')
  }
  return {
    count,
    slice: (from, to) => {
      const records: LogRecord[] = []
      for (let i = from; i < Math.min(to, count); i += 1) {
        const shape = shapes[chosen?.[i] ?? 0]
        if (shape !== undefined) records.push(recordOf(shape, rows?.[i] ?? i, first + i))
      }
      return records
    }
  }
}

function recordOf({ key, value, template, varying }: StoredShape, row: number, offset: number): LogRecord {
  // A copy of an object with all names in place costs 0.07 µs; one that gets its names one by one costs 2 µs.
  const headers = { ...template }
  for (const { name, column } of varying) setHeader(headers, name, column.at(row))
  return { offset, key: key.at(row), headers, value: value.at(row) }
}

/** The columns of a shape: key, headers from the last to the first, value. */
function readShape(reader: ByteReader): StoredShape {
  const rows = reader.varint()
  const names: string[] = []
  for (let left = reader.varint(); left > 0; left -= 1) names.push(reader.text())
  const key = readTextColumn(reader, rows, [])
  const columns = [key]
  for (let left = names.length; left > 0; left -= 1) columns.push(readTextColumn(reader, rows, columns))
  const value = readTextColumn(reader, rows, columns)
  const template: Record<string, string> = {}
  const varying: { name: string; column: TextColumn }[] = []
  for (const [n, name] of names.entries()) {
    const column = columns[names.length - n]
    if (column === undefined) continue
    setHeader(template, name, column.isConstant ? column.at(0) : '')
    if (!column.isConstant) varying.push({ name, column })
  }
  return { rows, key, value, template, varying }
}

function setHeader(headers: Record<string, string>, name: string, value: string): void {
  if (name !== '__proto__') headers[name] = value
  else Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true })
}
