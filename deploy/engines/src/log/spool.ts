import { errorMessage, type LogMessage, packMessages } from '@gamenet/schemas'
import { open } from 'lmdb'
import { flushNow, makeFolder } from '../flush-files.js'
import { FRAME_BYTES, frameOf, packBatch, stampBatch, unpackBatch } from './batch-codec.js'
import { allocateLock } from './lmdb-lock.js'

/*
 * Messages that wait for an unavailable log, in one LMDB file: a queue of parcels. Key: its number; value: the length
 * and name of the topic, then a packed batch. The file never shrinks: LMDB reuses freed pages.
 */

const PARCEL_MESSAGES_MAX = 8192
/** Maximum number of parcels returned together; fewer if they contain many messages. */
const OLDEST_PARCELS_MAX = 200
const OLDEST_MESSAGES_MAX = 8192

export type SpoolOptions = {
  /** Directory; created if missing. It belongs to one process. */
  readonly path: string
  /** Maximum number of waiting bytes, packed and compressed. */
  readonly bytesMax: number
  /** Milliseconds since 1970. */
  readonly now?: () => number
}

/** Messages of one topic from one `put`. */
export type Parcel = { readonly number: number; readonly topic: string; readonly messages: readonly LogMessage[] }

export type SpoolState = {
  readonly parcels: number
  readonly messages: number
  readonly bytes: number
  readonly bytesMax: number
  /** When the oldest waiting message was put in; null if none waits. */
  readonly oldestAtMs: number | null
}

/** A bounded, durable queue: messages survive a crash and leave in their order. */
export type Spool = {
  /** Resolves when all messages are flushed to the disk. Rejects with a sentence, and stores none, when it is full. */
  put(topic: string, messages: readonly LogMessage[]): Promise<void>
  /** Returns a bounded number of the oldest parcels in order; none if nothing waits. */
  oldest(): Promise<Parcel[]>
  /** Deletes parcels. */
  remove(parcels: readonly Parcel[]): Promise<void>
  state(): SpoolState
  close(): Promise<void>
}

export function openSpool({ path, bytesMax, now = Date.now }: SpoolOptions): Spool {
  makeFolder(path)
  allocateLock(path)
  const root = open<Buffer, number>({
    path,
    noSubdir: false,
    overlappingSync: false,
    eventTurnBatching: false,
    encoding: 'binary'
  })
  flushNow(path)
  const held = { parcels: 0, messages: 0, bytes: 0 }
  let next = 0
  const count = (value: Buffer, sign: 1 | -1): void => {
    held.parcels += sign
    held.messages += sign * frameOf(batchOf(value)).records
    held.bytes += sign * value.length
  }
  for (const { key, value } of root.getRange()) {
    count(value, 1)
    next = key + 1
  }
  const first = (): { key: number; value: Buffer } | undefined => {
    for (const entry of root.getRange({ limit: 1 })) return entry
    return undefined
  }
  return {
    async put(topic, messages) {
      const values: Buffer[] = []
      for (let from = 0; from < messages.length; from += PARCEL_MESSAGES_MAX) {
        const batch = await packBatch(packMessages(messages.slice(from, from + PARCEL_MESSAGES_MAX)))
        stampBatch(batch, { appendedAtMs: now(), bytesBefore: 0 })
        values.push(packedParcel(topic, batch))
      }
      const bytes = values.reduce((sum, value) => sum + value.length, 0)
      if (held.bytes + bytes > bytesMax)
        throw new Error(
          `the spool at ${path} is full: ${held.bytes} of ${bytesMax} bytes wait in it, and the new messages have ` +
            `${bytes}; restore the log, or raise SPOOL_BYTES_MAX`
        )
      // Numbered and counted before the commit, so that concurrent puts neither share a number nor exceed the limit.
      const numbered = values.map((value) => ({ key: next++, value }))
      for (const value of values) count(value, 1)
      try {
        await root.transaction(() => {
          for (const { key, value } of numbered) void root.put(key, value)
        })
      } catch (error) {
        for (const value of values) count(value, -1)
        throw new Error(`nothing was written to the spool at ${path}: ${errorMessage(error)}`, { cause: error })
      }
    },
    async oldest() {
      const parcels: Parcel[] = []
      let sum = 0
      for (const { key, value } of [...root.getRange({ limit: OLDEST_PARCELS_MAX })]) {
        const stored = await unpackBatch(batchOf(value), 0)
        if (parcels.length > 0 && sum + stored.count > OLDEST_MESSAGES_MAX) break
        sum += stored.count
        const messages = stored
          .slice(0, stored.count)
          .map(({ key, headers, value }) => ({ key: key ?? '', headers, value: String(value) }))
        parcels.push({ number: key, topic: value.toString('utf8', 1, 1 + nameBytes(value)), messages })
      }
      return parcels
    },
    async remove(parcels) {
      const known = parcels.flatMap(({ number }) => {
        const value = root.get(number)
        return value === undefined ? [] : [{ number, value }]
      })
      await root.transaction(() => {
        for (const { number } of known) void root.remove(number)
      })
      for (const { value } of known) count(value, -1)
    },
    state() {
      const oldest = held.parcels === 0 ? undefined : first()
      const oldestAtMs = oldest === undefined ? null : frameOf(batchOf(oldest.value)).appendedAtMs
      return { ...held, bytesMax, oldestAtMs }
    },
    close: () => root.close()
  }
}

function packedParcel(topic: string, batch: Buffer): Buffer {
  const name = Buffer.from(topic)
  return Buffer.concat([Buffer.from([name.length]), name, batch])
}

const batchOf = (value: Buffer): Buffer => value.subarray(1 + nameBytes(value))

function nameBytes(value: Buffer): number {
  const bytes = value[0]
  if (bytes === undefined || value.length < 1 + bytes + FRAME_BYTES)
    throw new Error('the spool holds a truncated parcel')
  return bytes
}
