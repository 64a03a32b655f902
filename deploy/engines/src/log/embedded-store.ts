import { errorMessage, type PartitionExtent } from '@gamenet/schemas'
import type { Database, RootDatabase } from 'lmdb'
import { frameOf } from './batch-codec.js'
import type { BatchKey } from './copy-log.js'
import type { SignalChannel } from './signal-channel.js'

/** The log's content differs from the appended records. The message says what to do. */
export class LogDamaged extends Error {
  constructor(readonly what: string) {
    super(`${what}. Restore the newest backup (gamenet restore); without one, see docs/operators/verify.md.`)
  }
}

/** LMDB's codes for damaged pages: PAGE_NOTFOUND, CORRUPTED, PANIC, INVALID, and BAD_TXN after one of these. */
const LMDB_DAMAGE: ReadonlySet<unknown> = new Set([-30797, -30796, -30795, -30793, -30782])

/** Returns whether LMDB met a damaged page. */
export function isOfLmdbDamage(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && LMDB_DAMAGE.has(error.code)
}

/** The open file of a log. */
export type Store = {
  readonly root: RootDatabase
  readonly batches: Database<Buffer, BatchKey>
  readonly path: string
  /** Partitions of each epoch, oldest epoch first. */
  readonly epochs: readonly { readonly epoch: number; readonly partitions: number }[]
  readonly channel: SignalChannel
  readonly now: () => number
}

/** Returns the epoch of appends. */
export function newestEpoch({ epochs }: Pick<Store, 'epochs'>): Store['epochs'][number] {
  return epochs.at(-1) ?? { epoch: 1, partitions: 1 }
}

/** Where a batch is, and the bytes of its partition before it. */
export type BatchPlace = { first: number; next: number; bytesBefore: number; bytes: number; appendedAtMs: number }

function placeOf({ path }: Store, key: BatchKey, batch: Buffer): BatchPlace {
  const { records, ...frame } = readableFrame(path, key, batch)
  return { ...frame, first: key[3], next: key[3] + records, bytes: batch.length }
}

/** Returns the frame of a stored batch; throws {@link LogDamaged} if it has none. */
export function readableFrame(path: string, key: BatchKey, batch: Buffer): ReturnType<typeof frameOf> {
  try {
    return frameOf(batch)
  } catch (error) {
    throw damagedAt(path, key, `the events cannot be read (${errorMessage(error)})`)
  }
}

export function damagedAt(path: string, [topic, epoch, partition, first]: BatchKey, what: string): LogDamaged {
  return new LogDamaged(`The log at ${path} is damaged: at ${topic} ${epoch}/${partition}/${first} ${what}`)
}

export function newestOf(store: Store, topic: string, epoch: number, partition: number): BatchPlace | undefined {
  return batchAtOrBefore(store, topic, epoch, partition, Number.MAX_SAFE_INTEGER)
}

/** Returns the batch with an offset, or the one before it. */
export function batchAtOrBefore(
  store: Store,
  topic: string,
  epoch: number,
  partition: number,
  offset: number
): BatchPlace | undefined {
  const start = [topic, epoch, partition, offset]
  const end = [topic, epoch, partition]
  for (const { key, value } of store.batches.getRange({ start, end, reverse: true, limit: 1 }))
    return placeOf(store, key, value)
  return undefined
}

function oldestOf(store: Store, topic: string, epoch: number, partition: number): BatchPlace | undefined {
  const start = [topic, epoch, partition, 0]
  const end = [topic, epoch, partition, Number.MAX_SAFE_INTEGER]
  for (const { key, value } of store.batches.getRange({ start, end, limit: 1 })) return placeOf(store, key, value)
  return undefined
}

export function extentOf(store: Store, topic: string, epoch: number, partition: number): PartitionExtent {
  const oldest = oldestOf(store, topic, epoch, partition)
  const newest = newestOf(store, topic, epoch, partition)
  return { epoch, partition, first: oldest?.first ?? 0, next: newest?.next ?? 0 }
}

/** Returns the extents of all partitions of a topic; none for a topic without messages. */
export function extentsOf(store: Store, topic: string): PartitionExtent[] {
  const extents: PartitionExtent[] = []
  for (const { epoch, partitions } of store.epochs) {
    const held = Array.from({ length: partitions }, (_, partition) => extentOf(store, topic, epoch, partition))
    if (held.some(({ next }) => next > 0)) extents.push(...held)
  }
  return extents
}
