import { errorMessage, type LogRecord, setHeader } from '@gamenet/schemas'
import { decompress } from './kafka-codecs.js'
import { positionNumber } from './partition.js'

/*
 * Reads record batches, format 2 of https://kafka.apache.org/documentation/#recordbatch. The decoder of kafkajs checks
 * no CRC, reads no codec but gzip, and takes four times the processor time: it copies the headers once per header, and
 * calculates timestamps in BigInt.
 */

/** A record with the fields by which kafkajs leaves out control records and aborted transactions. */
export type KafkaRecord = LogRecord & {
  readonly isControlRecord: boolean
  readonly batchContext: BatchContext
  /** Why the batch after the other records cannot be read. Set on the last element only, which is then no record. */
  readonly damage: string | undefined
}

type BatchContext = { readonly producerId: string; readonly inTransaction: boolean }

/** Byte offsets in a batch. */
const LENGTH = 8
const AFTER_LENGTH = 12
const FORMAT = 16
const CRC = 17
const ATTRIBUTES = 21
const FIRST_TIMESTAMP = 27
const LAST_TIMESTAMP = 35
const PRODUCER_ID = 43
const COUNT = 57
const RECORDS = 61

const CODEC = 0x07
/** Kafka stamped the batch when it stored it (`message.timestamp.type=LogAppendTime`). */
const STAMPED_BY_LOG = 0x08
const TRANSACTIONAL = 0x10
const CONTROL = 0x20

/**
 * Returns the records of the batches that one fetch has of a partition, without the last batch if Kafka cut it at the
 * limit of the fetch. A batch that cannot be read ends the list with an element that has its `damage`. That element has
 * the highest offset, because kafkajs filters by offset.
 */
export async function readBatches(bytes: Buffer): Promise<KafkaRecord[]> {
  const records: KafkaRecord[] = []
  for (let at = 0; at + AFTER_LENGTH <= bytes.length; ) {
    const end = at + AFTER_LENGTH + bytes.readInt32BE(at + LENGTH)
    if (end > bytes.length) break
    try {
      await readBatch(bytes.subarray(at, end), records)
    } catch (error) {
      records.push(damaged(`the batch at offset ${bytes.readBigInt64BE(at)}: ${errorMessage(error)}`))
      break
    }
    at = end
  }
  return records
}

function damaged(damage: string): KafkaRecord {
  const batchContext = { producerId: '', inTransaction: false }
  const offset = Number.MAX_SAFE_INTEGER
  return { offset, key: null, headers: {}, value: null, fault: undefined, isControlRecord: false, batchContext, damage }
}

/** Appends all records of a batch, or throws and appends none. */
async function readBatch(batch: Buffer, records: KafkaRecord[]): Promise<void> {
  if (batch.length < RECORDS) throw new Error(`it has ${batch.length} bytes, expected ${RECORDS} or more`)
  if (batch[FORMAT] !== 2) throw new Error(`its format is ${batch[FORMAT]}, expected 2 (Kafka 0.11 or newer)`)
  const [crc, expected] = [crc32C(batch.subarray(ATTRIBUTES)), batch.readUInt32BE(CRC)]
  if (crc !== expected) throw new Error(`its CRC-32C is ${crc.toString(16)}, expected ${expected.toString(16)}`)
  const attributes = batch.readInt16BE(ATTRIBUTES)
  const reader = new RecordReader(await decompress(attributes & CODEC, batch.subarray(RECORDS)), {
    first: positionNumber(batch.readBigInt64BE(0).toString()),
    timestampMs: Number(batch.readBigInt64BE((attributes & STAMPED_BY_LOG) === 0 ? FIRST_TIMESTAMP : LAST_TIMESTAMP)),
    isStampedByLog: (attributes & STAMPED_BY_LOG) !== 0,
    isControlRecord: (attributes & CONTROL) !== 0,
    batchContext: {
      producerId: batch.readBigInt64BE(PRODUCER_ID).toString(),
      inTransaction: (attributes & TRANSACTIONAL) !== 0
    }
  })
  const before = records.length
  try {
    for (let n = batch.readInt32BE(COUNT); n > 0; n -= 1) records.push(reader.next())
  } catch (error) {
    records.length = before
    throw error
  }
}

/** Table of the CRC-32C; 0x82f63b78 is its polynomial. */
const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0)
  return crc
})

function crc32C(bytes: Uint8Array): number {
  let crc = -1
  for (let i = 0; i < bytes.length; i += 1)
    crc = (CRC_TABLE[(crc ^ (bytes[i] as number)) & 0xff] as number) ^ (crc >>> 8)
  return ~crc >>> 0
}

/** A text of a record and the place of its bytes. */
type Cell = { text: string | null; start: number; length: number }

type BatchFacts = Pick<KafkaRecord, 'isControlRecord' | 'batchContext'> & {
  readonly first: number
  /** The base of the records' timestamps, or the timestamp of them all; -1: they have none. */
  readonly timestampMs: number
  readonly isStampedByLog: boolean
}

/** Reads the records of one batch in order. */
class RecordReader {
  readonly #bytes: Buffer
  readonly #batch: BatchFacts
  /** The key of the previous record, then the names and values of its headers. Most records share most of them. */
  readonly #cells: Cell[] = []
  #at = 0

  constructor(bytes: Buffer, batch: BatchFacts) {
    this.#bytes = bytes
    this.#batch = batch
  }

  next(): KafkaRecord {
    const length = this.#varint()
    const end = this.#at + length
    if (length < 0 || end > this.#bytes.length) throw new Error('a record extends beyond its batch')
    this.#at += 1
    const recordedAtMs = this.#timestamp(this.#varlong())
    const offset = this.#batch.first + this.#varint()
    const key = this.#text(0)
    const value = this.#value()
    const headers: Record<string, string> = {}
    let fault: string | undefined
    const cells = 2 * this.#varint()
    for (let cell = 1; cell <= cells && this.#at <= end; cell += 2) {
      const name = this.#text(cell)
      const text = this.#text(cell + 1)
      if (name === null || text === null) fault = `the header ${name} has no value`
      else setHeader(headers, name, text)
    }
    if (this.#at !== end) throw new Error(`the record at offset ${offset} does not end where its length says`)
    const { isControlRecord, batchContext } = this.#batch
    return { offset, key, headers, value, recordedAtMs, fault, isControlRecord, batchContext, damage: undefined }
  }

  #timestamp(deltaMs: number): number | undefined {
    const { timestampMs, isStampedByLog } = this.#batch
    const ms = isStampedByLog ? timestampMs : timestampMs + deltaMs
    return timestampMs < 0 || ms < 0 ? undefined : ms
  }

  #value(): Buffer | null {
    const length = this.#varint()
    if (length < 0) return null
    const start = this.#at
    this.#at += length
    return this.#bytes.subarray(start, this.#at)
  }

  #text(index: number): string | null {
    const length = this.#varint()
    const start = this.#at
    if (length > 0) this.#at += length
    const cell = this.#cells[index]
    if (cell?.length === length && this.#isSame(cell.start, start, length)) return cell.text
    const text = length < 0 ? null : this.#bytes.toString('utf8', start, this.#at)
    this.#cells[index] = { text, start, length }
    return text
  }

  #isSame(a: number, b: number, length: number): boolean {
    for (let i = 0; i < length; i += 1) if (this.#bytes[a + i] !== this.#bytes[b + i]) return false
    return true
  }

  /** Seven bits per byte, the lowest first, with the sign in the lowest bit. */
  #varint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#bytes[this.#at] as number
      this.#at += 1
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return (value >>> 1) ^ -(value & 1)
    }
    throw new Error('a number in a record has no end')
  }

  /** Like a varint, with up to 64 bits; exact up to 2^53. */
  #varlong(): number {
    let value = 0
    for (let unit = 1; ; unit *= 128) {
      const byte = this.#bytes[this.#at] ?? 0
      this.#at += 1
      value += (byte & 0x7f) * unit
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    }
  }
}
