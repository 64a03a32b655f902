import {
  leaderboardEntryTopic,
  loadCheckpoint,
  projectionCheckpoint,
  type ReaderPosition,
  Refusal
} from '@gamenet/schemas'
import type { AnswerContext } from '../answers/endpoint.js'
import { type ChangeFilter, type ChangeRow, type FeedPlace, recordedChanges } from '../queries/leaderboard-change.js'
import { rowsOf } from '../queries/query.js'
import type { PartitionPlace } from '../request/cursor.js'

/**
 * Number of offsets in the first read: a granule of the table, which contains the largest page if each event is a
 * change.
 */
const SPAN = 8192
/** Growth of the range when it contained too few changes that match the filter. */
const WIDER = 16

const FOLDED = projectionCheckpoint('leaderboard-entry')
const LOADED = loadCheckpoint(leaderboardEntryTopic.name)

/** A partition: everything before `readable` can be read, everything before `loaded` was consumed from the log. */
type Extent = {
  readonly epoch: number
  readonly partition: number
  readonly readable: number
  readonly loaded: number
}

/** One partition of the feed during the construction of a page. */
type PartitionReading = Extent & {
  place: FeedPlace
  rows: ChangeRow[]
  /** End of the range that was read. */
  seen: number
}

type FeedRequest = { readonly filter: ChangeFilter; readonly limit: number; readonly places: readonly PartitionPlace[] }
type FeedPage = {
  readonly rows: readonly ChangeRow[]
  readonly next: readonly PartitionPlace[]
  /** Events were loaded that cannot be read yet, so that the same request may return more in a moment. */
  readonly isBehind: boolean
}

/**
 * Returns a page of changes in the order of recording from the given places, and the next places. Partitions are merged
 * by the instants of their changes, each in its own order; an epoch precedes the next one. A page is full unless the
 * end is reached. Refuses places beyond everything that was ever loaded.
 */
export async function readFeed({ filter, limit, places }: FeedRequest, context: AnswerContext): Promise<FeedPage> {
  const extents = extentsOf(await context.positions([FOLDED, LOADED]))
  const readings = readingsOf(extents, places)
  const page: ChangeRow[] = []
  for (const epoch of new Set(readings.map((reading) => reading.epoch))) {
    const ofEpoch = readings.filter((reading) => reading.epoch === epoch)
    const wanted = limit - page.length
    if (wanted > 0) {
      await Promise.all(ofEpoch.map((reading) => look(reading, filter, wanted, context)))
      take(ofEpoch, wanted, page)
    }
  }
  const next = readings.map(({ epoch, partition, place }) => ({ at: { epoch, partition }, place }))
  return {
    rows: page,
    next,
    isBehind: page.length < limit && readings.some((reading) => reading.loaded > reading.readable)
  }
}

/** The feed of a step becomes visible board by board; its position is stored after all of them. */
function extentsOf(positions: readonly ReaderPosition[]): Extent[] {
  const extents = new Map<string, Extent>()
  for (const { name, epoch, partition, next } of positions) {
    const key = `${epoch}/${partition}`
    const before = extents.get(key) ?? { epoch, partition, readable: 0, loaded: 0 }
    extents.set(key, { ...before, ...(name === FOLDED ? { readable: next } : { loaded: next }) })
  }
  return [...extents.values()].sort((a, b) => a.epoch - b.epoch || a.partition - b.partition)
}

function readingsOf(extents: readonly Extent[], places: readonly PartitionPlace[]): PartitionReading[] {
  // Older epochs may have been longer: a backup was restored since.
  const newest = extents.at(-1)?.epoch ?? 0
  const given = new Map(places.map(({ at, place }) => [`${at.epoch}/${at.partition}`, { at, place }]))
  const readings = extents.map((extent) => {
    const key = `${extent.epoch}/${extent.partition}`
    const place = given.get(key)?.place ?? { recordedOffset: 0, epoch: 0, partition: 0, offset: 0 }
    given.delete(key)
    const isBeyond = place.recordedOffset > Math.max(extent.readable, extent.loaded)
    if (isBeyond && extent.epoch === newest) throw fromTheFuture()
    return { ...extent, place, rows: [], seen: place.recordedOffset }
  })
  if ([...given.values()].some(({ at }) => at.epoch >= newest)) throw fromTheFuture()
  return readings
}

function fromTheFuture(): Refusal {
  return new Refusal('cursor_invalid', ['after', 'it is beyond everything that this service has recorded'])
}

/** Reads this many changes of a partition in growing ranges. The first range takes the same time at every depth. */
async function look(
  reading: PartitionReading,
  filter: ChangeFilter,
  wanted: number,
  context: AnswerContext
): Promise<void> {
  for (let span = SPAN; reading.rows.length < wanted && reading.seen < reading.readable; span *= WIDER) {
    const endOffset = Math.min(reading.readable, reading.seen + span)
    const from =
      reading.seen === reading.place.recordedOffset ? reading.place : { ...START, recordedOffset: reading.seen }
    const params = {
      ...filter,
      ...from,
      recordedEpoch: reading.epoch,
      recordedPartition: reading.partition,
      endOffset,
      limit: wanted - reading.rows.length
    }
    reading.rows.push(...(await rowsOf(context.tables, recordedChanges(filter), params, { signal: context.signal })))
    reading.seen = endOffset
  }
}

const START: FeedPlace = { recordedOffset: 0, epoch: 0, partition: 0, offset: 0 }

/** Merges the partitions' rows until the page is full, and advances each partition's place beyond its consumed rows. */
function take(readings: readonly PartitionReading[], wanted: number, page: ChangeRow[]): void {
  const at = new Map(readings.map((reading) => [reading, 0]))
  const isFull = (): boolean => page.length >= end
  const end = page.length + wanted
  while (!isFull()) {
    const reading = earliest(readings, at)
    const n = reading === undefined ? 0 : (at.get(reading) ?? 0)
    const row = reading?.rows[n]
    if (reading === undefined || row === undefined) break
    page.push(row)
    at.set(reading, n + 1)
    const { recordedOffset, epoch, partition, offset } = row
    reading.place = { recordedOffset, epoch, partition, offset: offset + 1 }
  }
  for (const reading of readings) {
    // No matching change is left in the range, so the next page starts after it.
    const isDone = reading.rows.length < wanted && at.get(reading) === reading.rows.length
    if (isDone && reading.seen > reading.place.recordedOffset)
      reading.place = { ...START, recordedOffset: reading.seen }
  }
}

/** Returns the partition whose next change has the earliest instant; of equal ones, the lowest partition. */
function earliest(
  readings: readonly PartitionReading[],
  at: ReadonlyMap<PartitionReading, number>
): PartitionReading | undefined {
  let first: PartitionReading | undefined
  let firstMs = Number.POSITIVE_INFINITY
  for (const reading of readings) {
    const row = reading.rows[at.get(reading) ?? 0]
    if (row === undefined || row.atMs >= firstMs) continue
    first = reading
    firstMs = row.atMs
  }
  return first
}
