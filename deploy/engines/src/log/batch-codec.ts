import { promisify } from 'node:util'
import { crc32, deflate, deflateSync, inflate, inflateSync } from 'node:zlib'
import { type LogRecord, type PackedMessages, packedRows } from '@gamenet/schemas'
import type { StoredRecords } from './stored-records.js'

/*
 * A batch of messages as bytes: {@link PackedMessages}, deflated. The frame before them has the format, {@link
 * BatchFrame} and a CRC-32 of all other bytes.
 */

/** Below this size deflate takes less time than handing the bytes to another thread. */
const INLINE_BYTES_MAX = 8192
/** The first bytes of a stored batch, see {@link BatchFrame}. */
export const FRAME_BYTES = 25
const FRAME_FORMAT = 1
const CHECKSUM_AT = 21
/** Level of deflate: level 3 is a third faster, and its batches of a scrape take twice the bytes. */
const LEVEL = 6
/** Imports and whole boards make larger batches: level 2 takes a third of the time, and a fifth more bytes. */
const BULK_BYTES_MIN = 128 * 1024
const BULK_LEVEL = 2
const RAW_BYTES_MAX = 0xffff_ffff

const EXAMPLE_AT = '2026-03-14T20:00:00Z'
/**
 * Preset dictionary of deflate: frequent words and one message. With it, the batch of one sample takes a quarter of the
 * bytes. It is part of the format: a change of one byte makes existing batches unreadable, so a better one needs a new
 * number in the frame.
 */
const DICTIONARY = Buffer.from(
  JSON.stringify([
    '/write-side/import/presence',
    JSON.stringify({ titleId: '4d530064', source: 'players', durationMs: 100, outcome: 'succeeded', published: 0 }),
    JSON.stringify({
      observedAt: EXAMPLE_AT,
      registered: 20000,
      online: 500,
      lobbies: 40,
      sessions: 0,
      lobbyPlayers: 0
    }),
    Object.entries({
      ce_specversion: '1.0',
      ce_type: 'gamenet.network-count.v1',
      ce_source: '/scrape/network',
      ce_id: `network-count/network@${EXAMPLE_AT}`,
      ce_time: EXAMPLE_AT,
      'content-type': 'application/json'
    })
  ])
)

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

/** Compresses packed messages as a batch, with space for its frame at the beginning. */
export async function packBatch({ count, json }: PackedMessages): Promise<Buffer> {
  const raw = Buffer.from(json.buffer, json.byteOffset, json.length)
  if (raw.length > RAW_BYTES_MAX) throw new RangeError(`a batch of ${raw.length} bytes is larger than ${RAW_BYTES_MAX}`)
  const level = raw.length < BULK_BYTES_MIN ? LEVEL : BULK_LEVEL
  const options = { level, dictionary: DICTIONARY, chunkSize: Math.max(64, raw.length) }
  const packed = raw.length <= INLINE_BYTES_MAX ? deflateSync(raw, options) : await deflateAsync(raw, options)
  const batch = Buffer.allocUnsafe(FRAME_BYTES + packed.length)
  batch.writeUInt8(FRAME_FORMAT, 0)
  batch.writeUInt32LE(count, 1)
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

const checksumOf = (batch: Buffer): number => crc32(batch.subarray(FRAME_BYTES), crc32(batch.subarray(0, CHECKSUM_AT)))

/** Returns the frame of a stored batch. Throws if the bytes are not a batch, or are of a newer program. */
export function frameOf(batch: Buffer): BatchFrame {
  const format = batch[0] ?? 0
  if (format !== FRAME_FORMAT || batch.length < FRAME_BYTES)
    throw new Error(`a batch of the log has format ${format}, expected ${FRAME_FORMAT}: use a newer program`)
  return {
    records: batch.readUInt32LE(1),
    appendedAtMs: batch.readUIntLE(9, 6),
    bytesBefore: batch.readUIntLE(15, 6)
  }
}

/** Unpacks a stored batch whose first record has the offset `first`. Throws if the bytes are damaged. */
export async function unpackBatch(batch: Buffer, first: number): Promise<StoredRecords> {
  return recordsOf(await inflated(batch), frameOf(batch), first)
}

/** Verifies the checksum of a stored batch without unpacking it. Throws if the bytes are damaged. */
export function checkBatch(batch: Buffer): void {
  frameOf(batch)
  requireChecksum(batch)
}

/** Inflates the columns of a stored batch and verifies their checksum. */
async function inflated(batch: Buffer): Promise<Buffer> {
  requireChecksum(batch)
  const rawBytes = batch.readUInt32LE(5)
  const packed = batch.subarray(FRAME_BYTES)
  const options = { dictionary: DICTIONARY, chunkSize: Math.max(64, rawBytes), maxOutputLength: Math.max(1, rawBytes) }
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

function recordsOf(raw: Buffer, { records: count, appendedAtMs }: BatchFrame, first: number): StoredRecords {
  const { keyAt, headersAt, valueAt } = packedRows(raw.toString(), count)
  return {
    count,
    slice: (from, to) => {
      const records: LogRecord[] = []
      for (let row = from; row < Math.min(to, count); row += 1)
        records.push({
          offset: first + row,
          key: keyAt(row),
          headers: headersAt(row),
          value: valueAt(row),
          recordedAtMs: appendedAtMs
        })
      return records
    },
    valueAt
  }
}
