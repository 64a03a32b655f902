import { randomInt } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type ConsumeRequest,
  errorCode,
  errorMessage,
  type LogMessage,
  type LogRecord,
  type PartitionExtent,
  pause,
  stallOf,
  stallReason
} from '@gamenet/schemas'
import { type Database, open, type RootDatabase } from 'lmdb'
import { flushNow, makeFolder } from '../flush-files.js'
import { frameOf, packBatch, stampBatch, unpackBatch } from './batch-codec.js'
import { type BatchExtent, type CheckedEvents, checkBatches, type LogFault } from './check-batches.js'
import { type BatchKey, copyLog, type LogHead, storedHeads } from './copy-log.js'
import { damageOfLmdb } from './lmdb-pages.js'
import { assertTopicName, partitionOf } from './partition.js'
import { openSignalChannel, type SignalChannel } from './signal-channel.js'
import type { StoredRecords } from './stored-records.js'

/*
 * The log of a single machine, in one LMDB file. Key: [topic, epoch, partition, first offset]; value: a packed batch.
 * A partition's batches follow each other without a gap, so the newest key and its record count are the head.
 */

const DIRECTORY_FORMAT = 1
/** Packing 8,192 events takes the event loop about 15 ms; the compression after it runs on another thread. */
const BATCH_RECORDS_MAX = 8192
const BATCH_CHARACTERS_MAX = 4 * 1024 * 1024
const MESSAGE_CHARACTERS_MAX = 16 * 1024 * 1024
const WAITING_APPENDS_MAX = 10_000
/** Maximum number of bytes per commit, so that the first of many waiting appends does not wait for the last. */
const COMMIT_BYTES_MAX = 16 * 1024 * 1024
/** Batches are read together up to about this many records. */
const READ_RECORDS = 4096
/** Maximum number of records per delivery: 512 records are 0.3 MB, which the young generation frees. */
const DELIVERY_RECORDS = 512
const TRIM_BATCHES_MAX = 1000
/** Interval of checks whether a stalled partition may continue. */
const STALL_CHECK_MS = 2000
const TRIM_INTERVAL_MS = 60_000
const EPOCH_MAX = 65_535
const PARTITIONS_MAX = 1024
/** Share of the epochs left from which the next one is drawn: two restores of one backup get the same in 1 of 4,096. */
const NEXT_EPOCHS = 1 / 16
const FULL_BYTES = 16 * 1024 * 1024

const DAMAGE_WAY_OUT = 'Restore the newest backup (gamenet restore); without one, see docs/operators/verify.md.'

/** The log's content differs from the appended records. The message says what to do. */
export class LogDamaged extends Error {}

export type EmbeddedLogOptions = {
  /** Directory; created if missing. */
  readonly path: string
  /** Partitions of every topic in this epoch. Default: 1. */
  readonly partitions?: number
  /**
   * Incremented when topics are recreated or `partitions` changes. The log continues in its newest epoch if that is higher; `next`
   * begins an epoch after it. Older epochs stay readable. Default: 1.
   */
  readonly epoch?: number | 'next'
  /** Older batches are deleted, except the newest of a partition. Default: everything is kept. */
  readonly retentionMs?: number
  /** Maximum number of stored bytes per partition besides its newest batch. Default: everything is kept. */
  readonly retentionBytes?: number
  /** Milliseconds since 1970, for tests of retention. */
  readonly now?: () => number
}

/** A log in a directory. Appends of other threads of this process to the same directory are visible. */
export type EmbeddedLog = {
  /** The epoch of appends. */
  readonly epoch: number
  /**
   * Resolves when all messages are flushed to the disk. All of them are written or none. Calls keep their order;
   * simultaneous ones share one flush. Packing and compression take about 2 µs per message.
   */
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
  /** Returns the extents of the topic's partitions in all epochs; none for a topic that was never appended to. */
  extents(topic: string): Promise<readonly PartitionExtent[]>
  /**
   * Delivers the topics' records from `startAt`, and then new ones, until `signal` aborts. A start of 0 means the
   * oldest stored offset. At any other start that is not stored the partition stalls: `onStall` is called, and
   * `startAt` is polled until it returns a stored offset; without `onStall` the call rejects.
   */
  consume(request: ConsumeRequest): Promise<void>
  /** Does nothing: this log keeps no lag figures of its own. */
  commit(topic: string, position: { epoch: number; partition: number; next: number }): Promise<void>
  /** Returns the current ends of all partitions of all topics. */
  heads(): readonly LogHead[]
  /** Copies the log up to these heads into a new directory; later appends are not in the copy. */
  copyTo(directory: string, heads: readonly LogHead[]): Promise<void>
  /**
   * Verifies all checksums and returns the unreadable events. `take` receives the others batch by batch, with their records
   * where `reads` returns true. Blocks the thread for up to 0.1 s at a time.
   */
  check(
    take: (events: CheckedEvents) => Promise<void>,
    reads: (batch: BatchExtent) => boolean
  ): Promise<readonly LogFault[]>
  /** Applies the retention now. Otherwise an append does so once a minute. */
  trim(): Promise<void>
  /** Waits for running appends, ends all `consume` calls, closes the file. Later calls reject. */
  close(): Promise<void>
}

type Store = {
  readonly root: RootDatabase
  readonly batches: Database<Buffer, BatchKey>
  readonly path: string
  /** Partitions of each epoch, oldest epoch first. */
  readonly epochs: readonly { readonly epoch: number; readonly partitions: number }[]
  readonly channel: SignalChannel
  readonly now: () => number
}

type WaitingAppend = {
  readonly topic: string
  readonly packed: Promise<readonly { partition: number; batch: Buffer }[]>
  resolve(): void
  reject(error: Error): void
}

/** Opens the log in a directory, or creates it. Throws a sentence if the directory is unreadable. */
export function openEmbeddedLog(options: EmbeddedLogOptions): EmbeddedLog {
  const store = openStore(options)
  const closing = new AbortController()
  const readers = new Set<Promise<void>>()
  const appender = openAppender(store, options)
  const refuseWhenClosed = (): void => {
    if (closing.signal.aborted) throw new Error(`the log at ${store.path} is closed`)
  }
  return {
    epoch: newestEpoch(store).epoch,
    async append(topic, messages) {
      refuseWhenClosed()
      await appender.append(topic, messages)
    },
    async extents(topic) {
      refuseWhenClosed()
      store.batches.resetReadTxn()
      return extentsOf(store, topic)
    },
    async consume({ signal, ...request }) {
      refuseWhenClosed()
      const reading = consume(store, { ...request, signal: AbortSignal.any([signal, closing.signal]) })
      readers.add(reading)
      await reading.finally(() => readers.delete(reading))
    },
    async commit() {
      refuseWhenClosed()
    },
    heads() {
      refuseWhenClosed()
      store.batches.resetReadTxn()
      return storedHeads(store.batches)
    },
    async copyTo(directory, heads) {
      refuseWhenClosed()
      await copyLog(store.root, directory, heads)
    },
    async check(take, reads) {
      refuseWhenClosed()
      assertLmdbFile(store.path)
      return await checkBatches(store.batches, take, reads)
    },
    async trim() {
      refuseWhenClosed()
      await appender.trim()
    },
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      await appender.drained()
      await Promise.allSettled(readers)
      store.channel.close()
      await store.root.close()
    }
  }
}

function openStore(options: EmbeddedLogOptions): Store {
  const { epoch = 1, partitions = 1 } = options
  assertWithin('partitions', partitions, 1, PARTITIONS_MAX)
  makeFolder(options.path)
  const path = realpathSync(options.path)
  assertLmdbFile(path)
  let root: RootDatabase
  try {
    // With overlapping sync a commit would be acknowledged before it is flushed. With event-turn batching lmdb creates
    // a promise that nobody can catch, and a full disk would end the process.
    root = open({
      path,
      noSubdir: false,
      maxDbs: 4,
      overlappingSync: false,
      eventTurnBatching: false,
      encoding: 'binary'
    })
  } catch (error) {
    throw new Error(`${path} holds no log that can be opened: ${errorMessage(error)}`, { cause: error })
  }
  try {
    const meta = root.openDB<string, string>({ name: 'meta', encoding: 'string' })
    const batches = root.openDB<Buffer, BatchKey>({ name: 'batches', encoding: 'binary' })
    // Flushing the folder makes a new file durable; LMDB flushes its content.
    flushNow(path)
    const epochs = agreeOnEpochs(path, root, meta, epoch, partitions)
    return { root, batches, path, epochs, channel: openSignalChannel(path), now: options.now ?? Date.now }
  } catch (error) {
    void root.close()
    throw error
  }
}

/** Checks the file first: LMDB crashes the process if the file is damaged or no LMDB file. */
function assertLmdbFile(path: string): void {
  let damage: string | undefined
  try {
    damage = damageOfLmdb(join(path, 'data.mdb'))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return
    throw new Error(`${path} holds no log that can be opened: ${errorMessage(error)}`, { cause: error })
  }
  if (damage === undefined) return
  throw new LogDamaged(`The file data.mdb of the log at ${path} is damaged: ${damage}. ${DAMAGE_WAY_OUT}`)
}

function newestEpoch({ epochs }: Pick<Store, 'epochs'>): Store['epochs'][number] {
  return epochs.at(-1) ?? { epoch: 1, partitions: 1 }
}

/** Reads the directory's description, refuses a mismatch, and adds a new epoch. */
function agreeOnEpochs(
  path: string,
  root: RootDatabase,
  meta: Database<string, string>,
  requested: number | 'next',
  partitions: number
): Store['epochs'] {
  return root.transactionSync(() => {
    const format = meta.get('format') ?? String(DIRECTORY_FORMAT)
    if (format !== String(DIRECTORY_FORMAT)) {
      throw new Error(
        `the log at ${path} has format ${format}, this program reads ${DIRECTORY_FORMAT}: use the program that wrote it`
      )
    }
    const epochs = new Map<number, number>(JSON.parse(meta.get('epochs') ?? '[]'))
    const newest = Math.max(0, ...epochs.keys())
    const step = randomInt(1, 2 + Math.floor((EPOCH_MAX - newest) * NEXT_EPOCHS))
    const epoch = requested === 'next' ? newest + step : Math.max(newest, requested)
    assertWithin('epoch', epoch, 0, EPOCH_MAX)
    const known = epochs.get(epoch)
    if (known !== undefined && known !== partitions) {
      throw new Error(
        `the log at ${path} has ${known} partitions in epoch ${epoch}, requested were ${partitions}: raise the epoch`
      )
    }
    epochs.set(epoch, partitions)
    if (known === undefined) {
      meta.putSync('format', String(DIRECTORY_FORMAT))
      meta.putSync('epochs', JSON.stringify([...epochs]))
    }
    return [...epochs].map(([epoch, partitions]) => ({ epoch, partitions })).sort((a, b) => a.epoch - b.epoch)
  })
}

type Appender = {
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
  trim(): Promise<void>
  drained(): Promise<void>
}

/** Packs appends concurrently, and commits packed ones in the order of the calls. */
function openAppender(store: Store, options: EmbeddedLogOptions): Appender {
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
    if (store.now() - trimmedAtMs >= TRIM_INTERVAL_MS) {
      await trim().catch(() => {
        // A failed deletion is retried after the next interval; the appends are safe.
      })
    }
  }
  const startCommitting = (): void => {
    committing ??= commitAll().finally(() => {
      committing = undefined
      if (waiting.length > 0) startCommitting()
    })
  }
  return {
    async append(topic, messages) {
      assertTopicName(topic)
      if (messages.length === 0) return
      if (waiting.length >= WAITING_APPENDS_MAX) {
        throw new Error(`${WAITING_APPENDS_MAX} appends wait for the log at ${store.path}: append more slowly`)
      }
      const packed = packAll(messages, partitions)
      packed.catch(() => {
        // The commit awaits it in its turn.
      })
      await new Promise<void>((resolve, reject) => {
        waiting.push({ topic, packed, resolve, reject })
        startCommitting()
      })
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
    if (characters > MESSAGE_CHARACTERS_MAX) {
      throw new Error(`a message has ${characters} characters, the log takes up to ${MESSAGE_CHARACTERS_MAX}`)
    }
    const partition = partitionOf(message.key, partitions)
    const rows = byPartition.get(partition)
    if (rows === undefined) byPartition.set(partition, [message])
    else rows.push(message)
  }
  const packed: Promise<{ partition: number; batch: Buffer }>[] = []
  for (const [partition, rows] of byPartition) {
    for (const chunk of chunksOf(rows)) {
      if (packed.length > 0) await new Promise((resolve) => setImmediate(resolve))
      packed.push(packBatch(chunk).then((batch) => ({ partition, batch })))
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
 * Rejects when the disk has no room for a commit of so many bytes and for the pages that LMDB copies. Its binding corrupts memory after
 * failed writes: a process that met a full disk died at its stop.
 */
async function requireSpace({ path }: Store, bytes: number): Promise<void> {
  const free = await freeBytes(path)
  if (free < FULL_BYTES + 2 * bytes) throw new NoRoom(`${bytes} bytes were to be written`)
}

class NoRoom extends Error {}

/** Free bytes of the disk; NaN where they are unknown. */
async function freeBytes(path: string): Promise<number> {
  return await statfs(path).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => Number.NaN
  )
}

/** Returns the reason of a failed write: LMDB says "Input/output error" when the disk is full. */
async function writeFailure(store: Store, error: unknown): Promise<Error> {
  let cause = error
  if (error instanceof Error && 'commitError' in error) {
    cause = await Promise.resolve(error.commitError).catch((reason: unknown) => reason)
  }
  const free = await freeBytes(store.path)
  const why =
    cause instanceof NoRoom || free < FULL_BYTES
      ? `the disk is full, ${free} bytes are free (${errorMessage(cause)})`
      : errorMessage(cause)
  return new Error(`nothing was written to the log at ${store.path}: ${why}`, { cause })
}

function assertWithin(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return
  throw new Error(`${name} is ${value}, expected a whole number from ${least} to ${most}`)
}

type BatchPlace = { first: number; next: number; bytesBefore: number; bytes: number; appendedAtMs: number }

function placeOf(key: BatchKey, batch: Buffer): BatchPlace {
  const { records, ...frame } = frameOf(batch)
  return { ...frame, first: key[3], next: key[3] + records, bytes: batch.length }
}

function newestOf(store: Store, topic: string, epoch: number, partition: number): BatchPlace | undefined {
  return batchAtOrBefore(store, topic, epoch, partition, Number.MAX_SAFE_INTEGER)
}

function batchAtOrBefore(
  store: Store,
  topic: string,
  epoch: number,
  partition: number,
  offset: number
): BatchPlace | undefined {
  const start = [topic, epoch, partition, offset]
  const end = [topic, epoch, partition]
  for (const { key, value } of store.batches.getRange({ start, end, reverse: true, limit: 1 }))
    return placeOf(key, value)
  return undefined
}

function oldestOf(store: Store, topic: string, epoch: number, partition: number): BatchPlace | undefined {
  const start = [topic, epoch, partition, 0]
  const end = [topic, epoch, partition, Number.MAX_SAFE_INTEGER]
  for (const { key, value } of store.batches.getRange({ start, end, limit: 1 })) return placeOf(key, value)
  return undefined
}

function extentOf(store: Store, topic: string, epoch: number, partition: number): PartitionExtent {
  const oldest = oldestOf(store, topic, epoch, partition)
  const newest = newestOf(store, topic, epoch, partition)
  return { epoch, partition, first: oldest?.first ?? 0, next: newest?.next ?? 0 }
}

function extentsOf(store: Store, topic: string): PartitionExtent[] {
  const extents: PartitionExtent[] = []
  for (const { epoch, partitions } of store.epochs) {
    const held = Array.from({ length: partitions }, (_, partition) => extentOf(store, topic, epoch, partition))
    if (held.some(({ next }) => next > 0)) extents.push(...held)
  }
  return extents
}

/** Deletes whole batches, oldest first, a bounded number per transaction, until the retention is met. */
async function trimStore(store: Store, options: EmbeddedLogOptions): Promise<void> {
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

function expiredKeys(store: Store, { retentionMs, retentionBytes }: EmbeddedLogOptions): BatchKey[] {
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

/** Reads the topics concurrently; the first failure ends all of them. */
async function consume(store: Store, request: ConsumeRequest): Promise<void> {
  const failing = new AbortController()
  const signal = AbortSignal.any([request.signal, failing.signal])
  const readings = [...new Set(request.topics)].map((topic) =>
    readTopic(store, topic, { ...request, signal }).catch((error: unknown) => {
      failing.abort()
      throw error
    })
  )
  const failed = (await Promise.allSettled(readings)).find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** Reads epoch after epoch, so that a key keeps its order when it moves to another partition. */
async function readTopic(store: Store, topic: string, request: ConsumeRequest): Promise<void> {
  for (const [i, { epoch, partitions }] of store.epochs.entries()) {
    const isClosed = i < store.epochs.length - 1
    const failing = new AbortController()
    const signal = AbortSignal.any([request.signal, failing.signal])
    const readings = Array.from({ length: partitions }, (_, partition) =>
      readPartition(store, { topic, epoch, partition, isClosed }, { ...request, signal }).catch((error: unknown) => {
        failing.abort()
        throw error
      })
    )
    const failed = (await Promise.allSettled(readings)).find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }
}

type PartitionPlace = { topic: string; epoch: number; partition: number; isClosed: boolean }

/** Reads and unpacks the next records during the delivery of the previous ones. */
async function readPartition(store: Store, place: PartitionPlace, request: ConsumeRequest): Promise<void> {
  const { topic, epoch, partition, isClosed } = place
  const { signal } = request
  if (signal.aborted) return
  let next = await firstOffset(store, place, request)
  let ahead: Promise<Reading | 'trimmed'> | undefined
  while (!signal.aborted) {
    const received = store.channel.received()
    const reading = await (ahead ?? readFrom(store, place, next))
    ahead = undefined
    if (signal.aborted) return
    if (reading === 'trimmed') {
      next = await firstOffset(store, place, request)
      continue
    }
    if (reading.batches.length === 0) {
      if (isClosed) return
      await store.channel.wait(received, signal)
      continue
    }
    next = reading.next
    ahead = readFrom(store, place, next)
    ahead.catch(() => {
      // Handled when the loop reaches it; the running delivery has to end first.
    })
    for (const records of deliveriesOf(reading)) {
      if (signal.aborted) return
      await request.deliver({ topic, epoch, partition, records })
    }
  }
}

/** Batches in memory. The first one begins `skipped` records before the requested one. */
type Reading = { readonly batches: readonly StoredRecords[]; readonly skipped: number; readonly next: number }

/** Splits large batches and combines small ones. */
function* deliveriesOf({ batches, skipped }: Reading): Generator<LogRecord[]> {
  let records: LogRecord[] = []
  for (const [n, batch] of batches.entries()) {
    for (let from = n === 0 ? skipped : 0; from < batch.count; ) {
      const part = batch.slice(from, from + DELIVERY_RECORDS - records.length)
      from += part.length
      records.push(...part)
      if (records.length < DELIVERY_RECORDS) continue
      yield records
      records = []
    }
  }
  if (records.length > 0) yield records
}

/** Returns the offset to start from. If the log does not have it, waits until another one is requested. */
async function firstOffset(store: Store, place: PartitionPlace, request: ConsumeRequest): Promise<number> {
  const { topic, epoch, partition } = place
  const { startAt, onStall, signal } = request
  for (let stalledAt: number | undefined; ; ) {
    const wanted = await startAt(topic, epoch, partition)
    if (signal.aborted) return wanted
    store.batches.resetReadTxn()
    const extent = extentOf(store, topic, epoch, partition)
    const stall = stallOf(topic, extent, wanted)
    if (stall === undefined) return Math.max(wanted, extent.first)
    if (onStall === undefined) throw new Error(stallReason(stall, `the log at ${store.path}`))
    if (stalledAt !== wanted) onStall(stall)
    stalledAt = wanted
    await pause(STALL_CHECK_MS, signal, { ref: false })
    if (signal.aborted) return wanted
  }
}

function damagedAt(
  { path }: Store,
  { topic, epoch, partition }: PartitionPlace,
  first: number,
  what: string
): LogDamaged {
  return new LogDamaged(
    `The log at ${path} is damaged: at ${topic} ${epoch}/${partition}/${first} ${what}. ${DAMAGE_WAY_OUT}`
  )
}

/** Reads some thousand records from an offset; none at the head. */
async function readFrom(store: Store, place: PartitionPlace, offset: number): Promise<Reading | 'trimmed'> {
  const { topic, epoch, partition } = place
  store.batches.resetReadTxn()
  const found = batchAtOrBefore(store, topic, epoch, partition, offset)
  const from = found !== undefined && found.next > offset ? found.first : offset
  const batches: { first: number; bytes: Buffer }[] = []
  let end = from
  const range = { start: [topic, epoch, partition, from], end: [topic, epoch, partition, Number.MAX_SAFE_INTEGER] }
  for (const { key, value } of store.batches.getRange(range)) {
    if (key[3] !== end) break
    batches.push({ first: end, bytes: value })
    end += frameOf(value).records
    if (end - from >= READ_RECORDS) break
  }
  if (batches.length === 0) {
    const { first, next } = extentOf(store, topic, epoch, partition)
    if (offset >= next) return { batches: [], skipped: 0, next: offset }
    if (offset < first) return 'trimmed'
    throw damagedAt(store, place, offset, 'events are missing before later ones')
  }
  const unpacked = await Promise.all(
    batches.map(({ first, bytes }) =>
      unpackBatch(bytes, first).catch((error: unknown) => {
        throw damagedAt(store, place, first, `the events cannot be read (${errorMessage(error)})`)
      })
    )
  )
  return { batches: unpacked, skipped: offset - from, next: end }
}
