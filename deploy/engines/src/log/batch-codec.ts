import { promisify } from 'node:util'
import { crc32, deflate, deflateSync, inflate, inflateSync } from 'node:zlib'
import type { LogMessage, LogRecord } from '@gamenet/schemas'
import { DICTIONARY } from './dictionary.js'
import { DICTIONARY as DICTIONARY_1 } from './format-1/dictionary.js'
import { recordsOf as recordsOfFormat1 } from './format-1/records.js'
import { type StoredRecords, setHeader } from './stored-records.js'

/*
 * A batch of messages as bytes: a JSON array of the count and the columns (keys, values, each header), deflated. A column of
 * equal texts is one text. The frame before it has the format, {@link BatchFrame} and a CRC-32 of all other bytes.
 */

/** Below this size deflate takes less time than handing the bytes to another thread. */
const INLINE_BYTES_MAX = 8192
/** The first bytes of a stored batch, see {@link BatchFrame}. */
export const FRAME_BYTES = 25
/** The format of new batches. Format 2 lacks the checksum; {@link recordsOfFormat1} reads format 1. */
const FRAME_FORMAT = 3
const CHECKSUM_AT = 21
/** Bytes of the frame in formats 1 and 2. */
const FRAME_BYTES_BEFORE = 22
/** Level of deflate: level 3 is a third faster, and its batches of a scrape take twice the bytes. */
const LEVEL = 6
const RAW_BYTES_MAX = 0xffff_ffff
/** The number of messages follows the first character of the columns; digits beyond this limit are not a count. */
const COUNT_CHARACTERS_MAX = 12

const deflateAsync = promisify<Buffer, object, Buffer>(deflate)
const inflateAsync = promisify<Buffer, object, Buffer>(inflate)

/** Facts about a stored batch that are available without unpacking it. */
export type BatchFrame = {
  readonly records: number
  /** When it was appended, in milliseconds since 1970. */
  readonly appendedAtMs: number
  /** Stored bytes of all batches of its partition before it, including deleted ones. */
  readonly bytesBefore: number
}

/** Packs and compresses a batch, with space for its frame at the beginning. Texts are restored exactly. */
export async function packBatch(messages: readonly LogMessage[]): Promise<Buffer> {
  const raw = Buffer.from(JSON.stringify(columnsOf(messages)))
  if (raw.length > RAW_BYTES_MAX) throw new RangeError(`a batch of ${raw.length} bytes is larger than ${RAW_BYTES_MAX}`)
  const options = { level: LEVEL, dictionary: DICTIONARY, chunkSize: Math.max(64, raw.length) }
  const packed = raw.length <= INLINE_BYTES_MAX ? deflateSync(raw, options) : await deflateAsync(raw, options)
  const batch = Buffer.allocUnsafe(FRAME_BYTES + packed.length)
  batch.writeUInt8(FRAME_FORMAT, 0)
  batch.writeUInt32LE(messages.length, 1)
  batch.writeUInt32LE(raw.length, 5)
  packed.copy(batch, FRAME_BYTES)
  stampBatch(batch, { appendedAtMs: 0, bytesBefore: 0 })
  return batch
}

/** Adds the facts that are known only when the batch is stored. */
export function stampBatch(batch: Buffer, stamp: Pick<BatchFrame, 'appendedAtMs' | 'bytesBefore'>): void {
  batch.writeUIntLE(stamp.appendedAtMs, 9, 6)
  batch.writeUIntLE(stamp.bytesBefore, 15, 6)
  batch.writeUInt32LE(checksumOf(batch), CHECKSUM_AT)
}

function checksumOf(batch: Buffer): number {
  return crc32(batch.subarray(FRAME_BYTES), crc32(batch.subarray(0, CHECKSUM_AT)))
}

/** Returns the frame of a stored batch. Throws if the bytes are not a batch, or are of a newer program. */
export function frameOf(batch: Buffer): BatchFrame {
  const format = batch[0] ?? 0
  if (format < 1 || format > FRAME_FORMAT || batch.length < FRAME_BYTES) {
    throw new Error(`a batch of the log has format ${format}, expected 1 to ${FRAME_FORMAT}: use a newer program`)
  }
  return {
    records: batch.readUInt32LE(1),
    appendedAtMs: batch.readUIntLE(9, 6),
    bytesBefore: batch.readUIntLE(15, 6)
  }
}

/** Unpacks a stored batch whose first record has the offset `first`. Throws if the bytes are damaged. */
export async function unpackBatch(batch: Buffer, first: number): Promise<StoredRecords> {
  const { records } = frameOf(batch)
  const raw = await inflated(batch)
  return batch[0] === 1 ? recordsOfFormat1(raw, records, first) : recordsOf(JSON.parse(raw.toString()), records, first)
}

/**
 * Verifies a stored batch without decoding records. Throws if the bytes are damaged. Batches of earlier formats have no
 * checksum in the frame and are inflated, which takes twenty times as long.
 */
export async function checkBatch(batch: Buffer): Promise<void> {
  const { records } = frameOf(batch)
  if (batch[0] === FRAME_FORMAT) return requireChecksum(batch)
  const raw = await inflated(batch)
  if (batch[0] === 1) recordsOfFormat1(raw, records, 0)
  else requireCount(Number.parseInt(raw.toString('latin1', 1, COUNT_CHARACTERS_MAX), 10), records)
}

/** Inflates the columns of a stored batch and verifies their checksum. */
async function inflated(batch: Buffer): Promise<Buffer> {
  if (batch[0] === FRAME_FORMAT) requireChecksum(batch)
  const rawBytes = batch.readUInt32LE(5)
  const packed = batch.subarray(batch[0] === FRAME_FORMAT ? FRAME_BYTES : FRAME_BYTES_BEFORE)
  const dictionary = batch[0] === 1 ? DICTIONARY_1 : DICTIONARY
  const options = { dictionary, chunkSize: Math.max(64, rawBytes), maxOutputLength: Math.max(1, rawBytes) }
  const raw = rawBytes <= INLINE_BYTES_MAX ? inflateSync(packed, options) : await inflateAsync(packed, options)
  if (raw.length !== rawBytes)
    throw new Error(`a batch of the log unpacks to ${raw.length} bytes, expected ${rawBytes}`)
  return raw
}

function requireChecksum(batch: Buffer): void {
  const [stored, computed] = [batch.readUInt32LE(CHECKSUM_AT), checksumOf(batch)]
  if (stored !== computed)
    throw new Error(`a batch of the log has the checksum ${computed}, expected ${stored}: its bytes are damaged`)
}

function requireCount(held: number, records: number): void {
  if (held !== records) throw new RangeError(`the batch contains ${held} messages, expected ${records}`)
}

/** One text for all rows, or one per row; null for a message without the header. */
type Column = string | readonly (string | null)[]
type Columns = readonly [
  count: number,
  key: Column,
  value: Column,
  headers: readonly (readonly [name: string, Column])[]
]

function columnsOf(messages: readonly LogMessage[]): Columns {
  const names = new Set<string>()
  for (const { headers } of messages) for (const name of Object.keys(headers)) names.add(name)
  return [
    messages.length,
    columnOf(messages.map(({ key }) => key)),
    columnOf(messages.map(({ value }) => value)),
    [...names].map((name) => [
      name,
      columnOf(messages.map(({ headers }) => (Object.hasOwn(headers, name) ? (headers[name] ?? null) : null)))
    ])
  ]
}

function columnOf(texts: readonly (string | null)[]): Column {
  const [first] = texts
  return typeof first === 'string' && texts.every((text) => text === first) ? first : texts
}

function recordsOf([held, keys, values, headers]: Columns, count: number, first: number): StoredRecords {
  requireCount(held, count)
  for (const column of [keys, values, ...headers.map(([, texts]) => texts)]) {
    if (typeof column !== 'string' && column.length !== count)
      throw new RangeError(`the batch contains a column of ${column.length} texts, expected ${count}`)
  }
  const template: Record<string, string> = {}
  for (const [name, column] of headers) setHeader(template, name, typeof column === 'string' ? column : '')
  const varying = headers.filter(([, column]) => typeof column !== 'string')
  return {
    count,
    slice: (from, to) => {
      const records: LogRecord[] = []
      for (let row = from; row < Math.min(to, count); row += 1) {
        // Copying an object with all names in place costs 0.07 µs; adding the names one by one costs 2 µs.
        const own = { ...template }
        for (const [name, column] of varying) {
          const text = column[row]
          if (typeof text === 'string') setHeader(own, name, text)
          else delete own[name]
        }
        records.push({ offset: first + row, key: textAt(keys, row), headers: own, value: textAt(values, row) })
      }
      return records
    },
    valueAt: (row) => textAt(values, row)
  }
}

function textAt(column: Column, row: number): string {
  return typeof column === 'string' ? column : (column[row] ?? '')
}
