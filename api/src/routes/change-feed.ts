import {
  leaderboardEntryTopic,
  loadCheckpoint,
  projectionCheckpoint,
  type ReaderPosition,
  Refusal
} from '@gamenet/schemas'
import type { AnswerContext } from '../answers/endpoint.js'
import type { LanePlace } from '../http/request/cursor.js'
import { type ChangeFilter, type ChangeRow, type FeedPlace, recordedChanges } from '../queries/leaderboard-change.js'
import { rowsOf } from '../queries/query.js'

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
type Lane = Extent & {
  place: FeedPlace
  rows: ChangeRow[]
  /** End of the range that was read. */
  seen: number
}

type FeedRequest = { readonly filter: ChangeFilter; readonly limit: number; readonly places: readonly LanePlace[] }
type FeedPage = {
  readonly rows: readonly ChangeRow[]
  readonly next: readonly LanePlace[]
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
  const lanes = lanesOf(extents, places)
  const page: ChangeRow[] = []
  for (const epoch of new Set(lanes.map((lane) => lane.epoch))) {
    const ofEpoch = lanes.filter((lane) => lane.epoch === epoch)
    const wanted = limit - page.length
    if (wanted > 0) {
      await Promise.all(ofEpoch.map((lane) => look(lane, filter, wanted, context)))
      take(ofEpoch, wanted, page)
    }
  }
  const next = lanes.map(({ epoch, partition, place }) => ({ lane: { epoch, partition }, place }))
  return { rows: page, next, isBehind: page.length < limit && lanes.some((lane) => lane.loaded > lane.readable) }
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

function lanesOf(extents: readonly Extent[], places: readonly LanePlace[]): Lane[] {
  const given = new Map(places.map(({ lane, place }) => [`${lane.epoch}/${lane.partition}`, place]))
  const lanes = extents.map((extent) => {
    const key = `${extent.epoch}/${extent.partition}`
    const place = given.get(key) ?? { recordedOffset: 0, epoch: 0, partition: 0, offset: 0 }
    given.delete(key)
    if (place.recordedOffset > Math.max(extent.readable, extent.loaded)) throw fromTheFuture()
    return { ...extent, place, rows: [], seen: place.recordedOffset }
  })
  if (given.size > 0) throw fromTheFuture()
  return lanes
}

function fromTheFuture(): Refusal {
  return new Refusal('cursor_invalid', ['it is beyond everything that this service has recorded'])
}

/** Reads this many changes of a lane in growing ranges. The first range takes the same time at every depth. */
async function look(lane: Lane, filter: ChangeFilter, wanted: number, context: AnswerContext): Promise<void> {
  for (let span = SPAN; lane.rows.length < wanted && lane.seen < lane.readable; span *= WIDER) {
    const endOffset = Math.min(lane.readable, lane.seen + span)
    const from = lane.seen === lane.place.recordedOffset ? lane.place : { ...START, recordedOffset: lane.seen }
    const params = {
      ...filter,
      ...from,
      recordedEpoch: lane.epoch,
      recordedPartition: lane.partition,
      endOffset,
      limit: wanted - lane.rows.length
    }
    lane.rows.push(...(await rowsOf(context.tables, recordedChanges(filter), params, { signal: context.signal })))
    lane.seen = endOffset
  }
}

const START: FeedPlace = { recordedOffset: 0, epoch: 0, partition: 0, offset: 0 }

/** Merges the lanes' rows until the page is full, and advances each lane's place beyond its consumed rows. */
function take(lanes: readonly Lane[], wanted: number, page: ChangeRow[]): void {
  const at = new Map(lanes.map((lane) => [lane, 0]))
  const isFull = (): boolean => page.length >= end
  const end = page.length + wanted
  while (!isFull()) {
    const lane = earliest(lanes, at)
    const n = lane === undefined ? 0 : (at.get(lane) ?? 0)
    const row = lane?.rows[n]
    if (lane === undefined || row === undefined) break
    page.push(row)
    at.set(lane, n + 1)
    const { recordedOffset, epoch, partition, offset } = row
    lane.place = { recordedOffset, epoch, partition, offset: offset + 1 }
  }
  for (const lane of lanes) {
    // No matching change is left in the range, so the next page starts after it.
    const isDone = lane.rows.length < wanted && at.get(lane) === lane.rows.length
    if (isDone && lane.seen > lane.place.recordedOffset) lane.place = { ...START, recordedOffset: lane.seen }
  }
}

/** Returns the lane whose next change has the earliest instant; of equal ones, the lowest partition. */
function earliest(lanes: readonly Lane[], at: ReadonlyMap<Lane, number>): Lane | undefined {
  let first: Lane | undefined
  let firstMs = Number.POSITIVE_INFINITY
  for (const lane of lanes) {
    const row = lane.rows[at.get(lane) ?? 0]
    if (row === undefined || row.atMs >= firstMs) continue
    first = lane
    firstMs = row.atMs
  }
  return first
}
