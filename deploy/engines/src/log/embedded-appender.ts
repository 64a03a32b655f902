import { statfs } from 'node:fs/promises'
import {
  errorMessage,
  Failure,
  isFailure,
  type LogMessage,
  type PackedMessages,
  packMessages,
  unpackMessages
} from '@gamenet/schemas'
import { LOG_FREE_BYTES_MIN } from '../flush-files.js'
import { frameOf, packBatch, stampBatch } from './batch-codec.js'
import type { BatchKey } from './copy-log.js'
import { newestEpoch, newestOf, type Store } from './embedded-store.js'
import { assertTopicName, partitionOf } from './partition.js'

/** Packing 8,192 events takes the event loop about 15 ms; the compression after it runs on another thread. */
const BATCH_RECORDS_MAX = 8192
const BATCH_CHARACTERS_MAX = 4 * 1024 * 1024
const MESSAGE_CHARACTERS_MAX = 16 * 1024 * 1024
const WAITING_APPENDS_MAX = 10_000
/** Maximum number of bytes per commit, so that the first of many waiting appends does not wait for the last. */
const COMMIT_BYTES_MAX = 16 * 1024 * 1024
const TRIM_BATCHES_MAX = 1000
const TRIM_INTERVAL_MS = 60_000

type WaitingAppend = {
  readonly topic: string
  readonly packed: Promise<readonly { partition: number; batch: Buffer }[]>
  resolve(): void
  reject(error: Error): void
}

/** Which batches an append deletes, at most once a minute. */
export type Retention = {
  /** Older batches are deleted, except the newest of a partition. Default: everything is kept. */
  readonly retentionMs?: number
  /** Maximum number of stored bytes per partition besides its newest batch. Default: everything is kept. */
  readonly retentionBytes?: number
}

export type Appender = {
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
  appendPacked(topic: string, packed: PackedMessages): Promise<void>
  trim(): Promise<void>
  drained(): Promise<void>
}

/** Packs appends concurrently, and commits packed ones in the order of the calls. */
export function openAppender(store: Store, options: Retention): Appender {
  const { epoch, partitions } = newestEpoch(store)
  const waiting: WaitingAppend[] = []
  let committing: Promise<void> | undefined
  let trimmedAtMs = Number.NEGATIVE_INFINITY

  const trim = async (): Promise<void> => {
    trimmedAtMs = store.now()
    if (options.retentionMs === undefined && options.retentionBytes === undefined) return
    await trimStore(store, options)
  }
  const commitAll = async (): Promise<void> => {
    while (waiting.length > 0) await commitNext(store, epoch, waiting)
    if (store.now() - trimmedAtMs >= TRIM_INTERVAL_MS)
      await trim().catch(() => {
        // A failed deletion is retried after the next interval; the appends are safe.
      })
  }
  const startCommitting = (): void => {
    committing ??= commitAll().finally(() => {
      committing = undefined
      if (waiting.length > 0) startCommitting()
    })
  }
  const enqueue = async (topic: string, pack: () => WaitingAppend['packed']): Promise<void> => {
    assertTopicName(topic)
    if (waiting.length >= WAITING_APPENDS_MAX)
      throw new Error(`${WAITING_APPENDS_MAX} appends wait for the log at ${store.path}: append more slowly`)
    const packed = pack()
    packed.catch(() => {
      // The commit awaits it in its turn.
    })
    await new Promise<void>((resolve, reject) => {
      waiting.push({ topic, packed, resolve, reject })
      startCommitting()
    })
  }
  const append: Appender['append'] = async (topic, messages) => {
    if (messages.length > 0) await enqueue(topic, () => packAll(messages, partitions))
  }
  return {
    append,
    async appendPacked(topic, packed) {
      const { count, json } = packed
      const isOneBatch = partitions === 1 && count <= BATCH_RECORDS_MAX && json.length <= BATCH_CHARACTERS_MAX
      if (count === 0 || !isOneBatch) return await append(topic, unpackMessages(packed))
      await enqueue(topic, async () => [{ partition: 0, batch: await packBatch(packed) }])
    },
    trim,
    async drained() {
      while (committing !== undefined) await committing
    }
  }
}

/** Packs messages into batches of one partition each, in order. Lets the event loop turn between two batches. */
async function packAll(
  messages: readonly LogMessage[],
  partitions: number
): Promise<readonly { partition: number; batch: Buffer }[]> {
  const byPartition = new Map<number, LogMessage[]>()
  for (const message of messages) {
    const characters = message.key.length + message.value.length
    if (characters > MESSAGE_CHARACTERS_MAX)
      throw new Error(`a message has ${characters} characters, the log accepts up to ${MESSAGE_CHARACTERS_MAX}`)
    const partition = partitionOf(message.key, partitions)
    const rows = byPartition.get(partition)
    if (rows === undefined) byPartition.set(partition, [message])
    else rows.push(message)
  }
  const packed: Promise<{ partition: number; batch: Buffer }>[] = []
  for (const [partition, rows] of byPartition) {
    for (const chunk of chunksOf(rows)) {
      if (packed.length > 0) await new Promise((resolve) => setImmediate(resolve))
      packed.push(packBatch(packMessages(chunk)).then((batch) => ({ partition, batch })))
    }
  }
  return await Promise.all(packed)
}

function chunksOf(messages: readonly LogMessage[]): LogMessage[][] {
  const chunks: LogMessage[][] = []
  const records = Math.ceil(messages.length / Math.ceil(messages.length / BATCH_RECORDS_MAX))
  let chunk: LogMessage[] = []
  let characters = 0
  for (const message of messages) {
    const more = message.key.length + message.value.length
    if (chunk.length > 0 && (chunk.length >= records || characters + more > BATCH_CHARACTERS_MAX)) {
      chunks.push(chunk)
      chunk = []
      characters = 0
    }
    chunk.push(message)
    characters += more
  }
  if (chunk.length > 0) chunks.push(chunk)
  return chunks
}

/** Commits the longest packed run of appends from the front in one flush. */
async function commitNext(store: Store, epoch: number, waiting: WaitingAppend[]): Promise<void> {
  const group: { append: WaitingAppend; batches: readonly { partition: number; batch: Buffer }[] }[] = []
  let bytes = 0
  while (waiting.length > 0 && bytes < COMMIT_BYTES_MAX) {
    const append = waiting[0]
    if (append === undefined || (group.length > 0 && !(await hasEnded(append.packed)))) break
    waiting.shift()
    try {
      const batches = await append.packed
      group.push({ append, batches })
      for (const { batch } of batches) bytes += batch.length
    } catch (error) {
      append.reject(error instanceof Error ? error : new Error(String(error)))
    }
  }
  if (group.length === 0) return
  try {
    await requireSpace(store, bytes)
    await store.batches.transaction(() => {
      for (const { append, batches } of group) {
        for (const { partition, batch } of batches) putBatch(store, append.topic, epoch, partition, batch)
      }
    })
  } catch (error) {
    const failure = await writeFailure(store, error)
    for (const { append } of group) append.reject(failure)
    return
  }
  store.channel.notify()
  for (const { append } of group) append.resolve()
}

async function hasEnded(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending')
  const winner = await Promise.race([promise, Promise.resolve(pending)]).catch(() => undefined)
  return winner !== pending
}

/** Appends the batch to its partition. Reads the newest batch inside the same transaction. */
function putBatch(store: Store, topic: string, epoch: number, partition: number, batch: Buffer): void {
  const newest = newestOf(store, topic, epoch, partition)
  stampBatch(batch, {
    appendedAtMs: store.now(),
    bytesBefore: newest === undefined ? 0 : newest.bytesBefore + newest.bytes
  })
  void store.batches.put([topic, epoch, partition, newest?.next ?? 0], batch)
}

/**
 * Rejects if the disk has no space for a commit of this many bytes and for the pages that LMDB copies. Its binding
 * corrupts memory after a failed write: after a full disk, the process crashed at its stop.
 */
async function requireSpace({ path }: Store, bytes: number): Promise<void> {
  const free = await freeBytes(path)
  if (free < LOG_FREE_BYTES_MIN + 2 * bytes)
    throw new Failure('no_space', `the disk of the log has ${free} bytes free, too few to write ${bytes} more`)
}

/** Returns the free bytes of the disk; NaN if they are unknown. */
async function freeBytes(path: string): Promise<number> {
  return await statfs(path).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => Number.NaN
  )
}

/** Returns the reason of a failed write: LMDB says "Input/output error" when the disk is full. */
async function writeFailure(store: Store, error: unknown): Promise<Error> {
  let cause = error
  if (error instanceof Error && 'commitError' in error)
    cause = await Promise.resolve(error.commitError).catch((reason: unknown) => reason)
  const free = await freeBytes(store.path)
  const isFull = isFailure(cause, 'no_space') || free < LOG_FREE_BYTES_MIN
  const why = isFull ? `the disk is full, ${free} bytes are free (${errorMessage(cause)})` : errorMessage(cause)
  const failure = new Error(`nothing was written to the log at ${store.path}: ${why}`, { cause })
  return isFull ? Object.assign(failure, { code: 'ENOSPC' }) : failure
}

/** Deletes whole batches, oldest first, a bounded number per transaction, until the retention is met. */
async function trimStore(store: Store, options: Retention): Promise<void> {
  for (;;) {
    let deleted = 0
    await store.batches.transaction(() => {
      for (const key of expiredKeys(store, options)) {
        void store.batches.remove(key)
        deleted += 1
      }
    })
    if (deleted < TRIM_BATCHES_MAX) return
  }
}

function expiredKeys(store: Store, { retentionMs, retentionBytes }: Retention): BatchKey[] {
  const oldestMs = retentionMs === undefined ? Number.NEGATIVE_INFINITY : store.now() - retentionMs
  const keys: BatchKey[] = []
  for (let after: BatchKey | undefined; keys.length < TRIM_BATCHES_MAX; ) {
    const [oldest] = store.batches.getRange({ ...(after === undefined ? {} : { start: after }), limit: 1 })
    if (oldest === undefined) return keys
    const [topic, epoch, partition] = oldest.key
    const newest = newestOf(store, topic, epoch, partition)
    const end: BatchKey = [topic, epoch, partition, newest?.first ?? 0]
    const limit = TRIM_BATCHES_MAX - keys.length
    for (const { key, value } of store.batches.getRange({ start: oldest.key, end, limit })) {
      const { appendedAtMs, bytesBefore } = frameOf(value)
      const held = (newest?.bytesBefore ?? 0) + (newest?.bytes ?? 0) - bytesBefore
      if (appendedAtMs >= oldestMs && held <= (retentionBytes ?? Number.POSITIVE_INFINITY)) break
      keys.push(key)
    }
    after = [topic, epoch, partition, Number.MAX_SAFE_INTEGER]
  }
  return keys
}
