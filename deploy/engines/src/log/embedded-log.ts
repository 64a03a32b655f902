import { randomInt } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  type ConsumeRequest,
  errorCode,
  errorMessage,
  Failure,
  type LogMessage,
  type PackedMessages,
  type PartitionExtent,
  withSignals
} from '@gamenet/schemas'
import { type Database, open, type RootDatabase } from 'lmdb'
import { flushNow, makeFolder } from '../flush-files.js'
import { type BatchExtent, type CheckedEvents, checkBatches, type LogFault } from './check-batches.js'
import { type BatchKey, copyLog, type LogHead, storedHeads } from './copy-log.js'
import { openAppender, type Retention } from './embedded-appender.js'
import { consume } from './embedded-reader.js'
import { extentsOf, LogDamaged, newestEpoch, type Store } from './embedded-store.js'
import { allocateLock } from './lmdb-lock.js'
import { type MetaState, stateOfMeta } from './lmdb-meta.js'
import { type Reads, readLogApart, readLogApartNow } from './read-apart.js'
import { openSignalChannel } from './signal-channel.js'

/*
 * The log of a single machine, in one LMDB file. Key: [topic, epoch, partition, first offset]; value: a packed batch.
 * A partition's batches follow each other without a gap, so the newest key and its record count are the head.
 */

const DIRECTORY_FORMAT = 1
const EPOCH_MAX = 65_535
const PARTITIONS_MAX = 1024
/**
 * The next epoch is drawn from this share of the remaining ones: two restores of one backup get the same in 1 of 4,096
 * cases.
 */
const NEXT_EPOCHS = 1 / 16

export type EmbeddedLogOptions = Retention & {
  /** Directory; created if missing. */
  readonly path: string
  /** Partitions of every topic in this epoch. Default: 1. */
  readonly partitions?: number
  /**
   * Incremented when topics are recreated or `partitions` changes. The log continues in its newest epoch if that is
   * higher; `next` begins an epoch after it. Older epochs stay readable. Default: 1.
   */
  readonly epoch?: number | 'next'
  /** Milliseconds since 1970, for tests of retention. */
  readonly now?: () => number
}

/** A log in a directory. Appends of other threads of this process to the same directory are visible. */
export type EmbeddedLog = {
  /** The epoch of appends. */
  readonly epoch: number
  /** All epochs that can be read. */
  readonly epochs: readonly number[]
  /**
   * Resolves when all messages are flushed to the disk. All of them are written or none. Calls keep their order;
   * simultaneous ones share one flush. Packing and compression take about 2 µs per message.
   */
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
  /** The same for messages packed by another thread; this thread parses none of them. */
  appendPacked(topic: string, packed: PackedMessages): Promise<void>
  /** Returns the extents of the topic's partitions in all epochs; none for a topic that was never appended to. */
  extents(topic: string): Promise<readonly PartitionExtent[]>
  /**
   * Delivers the topics' records from `startAt`, and then new ones, until `signal` aborts. A start of 0 means the
   * oldest stored offset. At any other start that is not stored the partition stalls: `onStall` is called, and
   * `startAt` is polled until it returns a stored offset; without `onStall` the call rejects.
   */
  consume(request: ConsumeRequest): Promise<void>
  /** Does nothing: this log has no lag figures of its own. */
  commit(topic: string, position: { epoch: number; partition: number; next: number }): Promise<void>
  /** Returns the current ends of all partitions of all topics. */
  heads(): readonly LogHead[]
  /** Copies the log up to these heads into a new directory; later appends are not in the copy. */
  copyTo(directory: string, heads: readonly LogHead[]): Promise<void>
  /**
   * Verifies all checksums and returns the unreadable events. `take` receives the others batch by batch, with their
   * records if `reads` returns true. Blocks the thread for up to 0.1 s at a time.
   */
  check(
    take: (events: CheckedEvents) => Promise<void>,
    reads: (batch: BatchExtent) => boolean
  ): Promise<readonly LogFault[]>
  /**
   * Reads all keys, or all batches, in a process of its own, which damaged pages may end. Rejects with
   * {@link LogDamaged}. Appends go on; pages of deleted batches are not used again meanwhile.
   */
  readApart(reads: Reads, signal?: AbortSignal): Promise<void>
  /** Applies the retention now. Otherwise an append does so once a minute. */
  trim(): Promise<void>
  /** Waits for running appends, ends all `consume` calls, closes the file. Later calls reject. */
  close(): Promise<void>
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
    epochs: store.epochs.map(({ epoch }) => epoch),
    async append(topic, messages) {
      refuseWhenClosed()
      await appender.append(topic, messages)
    },
    async appendPacked(topic, packed) {
      refuseWhenClosed()
      await appender.appendPacked(topic, packed)
    },
    async extents(topic) {
      refuseWhenClosed()
      store.batches.resetReadTxn()
      return extentsOf(store, topic)
    },
    async consume({ signal, ...request }) {
      refuseWhenClosed()
      const reading = withSignals([signal, closing.signal], ({ signal: ended }) =>
        consume(store, { ...request, signal: ended })
      )
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
      return await checkBatches(store.batches, take, reads)
    },
    async readApart(reads, signal) {
      refuseWhenClosed()
      // LMDB sees the transactions of its own lock file only: this one keeps the pages that the other process reads.
      const reading = store.root.useReadTransaction()
      await readLogApart(store.path, reads, signal).finally(() => reading.done())
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
  allocateLock(path)
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
    throw new Failure('log_unopened', `The log at ${path} cannot be opened: ${errorMessage(error)}`, { cause: error })
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

/** Checks the files first: LMDB crashes the process if the one is cut or no LMDB file, or the other a folder. */
function assertLmdbFile(path: string): void {
  if (statSync(join(path, 'lock.mdb'), { throwIfNoEntry: false })?.isDirectory() === true)
    throw new Failure(
      'log_unopened',
      `The log at ${path} cannot be opened: its file lock.mdb is a folder; move it away`
    )
  let state: MetaState
  try {
    state = stateOfMeta(join(path, 'data.mdb'))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return
    throw new Failure('log_unopened', `The log at ${path} cannot be opened: ${errorMessage(error)}`, { cause: error })
  }
  // Free pages may lie beyond the end of a sound file.
  if (state === 'short') readLogApartNow(path)
  else if (state !== 'sound')
    throw new LogDamaged(`The file data.mdb of the log at ${path} is damaged: ${state.damage}`)
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
    if (format !== String(DIRECTORY_FORMAT))
      throw new Error(
        `the log at ${path} has format ${format}, this program reads ${DIRECTORY_FORMAT}: use the program that wrote it`
      )
    const epochs = new Map<number, number>(JSON.parse(meta.get('epochs') ?? '[]'))
    const newest = Math.max(0, ...epochs.keys())
    const step = randomInt(1, 2 + Math.floor((EPOCH_MAX - newest) * NEXT_EPOCHS))
    const epoch = requested === 'next' ? newest + step : Math.max(newest, requested)
    assertWithin('epoch', epoch, 0, EPOCH_MAX)
    const known = epochs.get(epoch)
    if (known !== undefined && known !== partitions)
      throw new Error(
        `the log at ${path} has ${known} partitions in epoch ${epoch}, requested were ${partitions}: raise the epoch`
      )
    epochs.set(epoch, partitions)
    if (known === undefined) {
      meta.putSync('format', String(DIRECTORY_FORMAT))
      meta.putSync('epochs', JSON.stringify([...epochs]))
    }
    return [...epochs].map(([epoch, partitions]) => ({ epoch, partitions })).sort((a, b) => a.epoch - b.epoch)
  })
}

function assertWithin(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return
  throw new Error(`${name} is ${value}, expected a whole number from ${least} to ${most}`)
}
