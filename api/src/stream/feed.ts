import { comparePlaces, type PartitionId, type Place, type Position, partsOf, positionText } from './cursor.js'
import type { RecordedKind, StreamEvent } from './kinds.js'

/** Limit of the recent events of one kind. */
const RECENT_BYTES_MAX = 8 * 1024 * 1024
/** Size of an event without its body. */
const EVENT_BYTES = 300

/** The recent events of a partition: all from `start` to the head. */
type Recent = { start: Place; readonly events: StreamEvent[] }

/**
 * One kind in this process: the position up to which it was read, and its recent events, which reach listeners that are
 * slightly behind without a query.
 */
export class Feed {
  readonly kind: RecordedKind
  readonly #head = new Map<PartitionId, Place>()
  readonly #recent = new Map<PartitionId, Recent>()
  /** Everything before `readable` is in the tables, everything before `loaded` was consumed from the log. */
  readonly #extents = new Map<PartitionId, { readonly readable: number; readonly loaded: number }>()
  #isKnown = false
  #bytes = 0
  #text: string | undefined

  constructor(kind: RecordedKind) {
    this.kind = kind
  }

  /** The position up to which it was read: that of every live listener. */
  get head(): Position {
    return this.#head
  }

  /** The head as it is written in a cursor. */
  get headText(): string {
    this.#text ??= positionText(this.#head)
    return this.#text
  }

  /** Adds a partition, to be read from a place. */
  begin(partitionId: PartitionId, start: Place): void {
    this.#recent.set(partitionId, { start, events: [] })
    this.moveTo(partitionId, start)
  }

  /** Whether its partitions are known, after the first read. */
  get isKnown(): boolean {
    return this.#isKnown
  }

  /** The position after all events that were readable at the last read. */
  get now(): Position {
    return new Map([...this.#extents].map(([partitionId, { readable }]) => [partitionId, [readable]]))
  }

  /** Records the extents of its partitions. They do not shrink on a rollback to older tables. */
  setExtents(
    extents: Iterable<{ readonly partitionId: PartitionId; readonly readable: number; readonly loaded: number }>
  ): void {
    this.#isKnown = true
    for (const { partitionId, readable, loaded } of extents) {
      const before = this.#extents.get(partitionId) ?? { readable: 0, loaded: 0 }
      this.#extents.set(partitionId, {
        readable: Math.max(before.readable, readable),
        loaded: Math.max(before.loaded, loaded)
      })
    }
  }

  /** Moves the head of a partition. */
  moveTo(partitionId: PartitionId, place: Place): void {
    this.#head.set(partitionId, place)
    this.#text = undefined
  }

  /** Adds an event at the head. */
  add(event: StreamEvent): void {
    this.moveTo(event.partitionId, event.next)
    this.#recent.get(event.partitionId)?.events.push(event)
    this.#bytes += bytesOf(event)
    while (this.#bytes > RECENT_BYTES_MAX) this.#dropOldest()
  }

  /** Drops all recent events: they may name an erased user. */
  dropRecent(): void {
    for (const [partitionId, recent] of this.#recent) {
      recent.events.length = 0
      recent.start = this.#head.get(partitionId) ?? recent.start
    }
    this.#bytes = 0
  }

  /** Whether all events after a position are recent ones. */
  covers(position: Position): boolean {
    for (const [partitionId, { start }] of this.#recent)
      if (comparePlaces(position.get(partitionId), start) < 0) return false
    return true
  }

  /** Whether a position has reached the head in every partition. */
  isReached(position: Position): boolean {
    for (const [partitionId, place] of this.#head) if (comparePlaces(position.get(partitionId), place) < 0) return false
    return true
  }

  /** Whether a position is beyond the head of a partition that may continue, known here or not. */
  isAhead(position: Position): boolean {
    for (const [partitionId, place] of position) {
      const head = this.#head.get(partitionId)
      const isAhead = head === undefined || comparePlaces(place, head) > 0
      if (isAhead && !this.#hasEnded(partitionId)) return true
    }
    return false
  }

  /**
   * Whether a position is beyond all events of the current epoch. Other epochs may have been longer before a restore,
   * and an earlier restore of the same backup may have drawn a later epoch.
   */
  isBeyond(position: Position, epoch: number): boolean {
    for (const [partitionId, [offset = 0]] of position) {
      if (partsOf(partitionId).epoch !== epoch) continue
      const extent = this.#extents.get(partitionId)
      if (extent === undefined || offset > Math.max(extent.readable, extent.loaded)) return true
    }
    return false
  }

  /**
   * Returns at most `limit` recent events of a partition after a place that pass, and the place up to which it
   * searched.
   */
  since(
    partitionId: PartitionId,
    place: Place | undefined,
    limit: number,
    passes: (event: StreamEvent) => boolean
  ): { readonly events: readonly StreamEvent[]; readonly next: Place } {
    const events = this.#recent.get(partitionId)?.events ?? []
    const found: StreamEvent[] = []
    for (let n = firstBehind(events, place); n < events.length; n += 1) {
      const event = events[n]
      if (event === undefined || !passes(event)) continue
      if (found.length === limit) return { events: found, next: found.at(-1)?.next ?? event.next }
      found.push(event)
    }
    const head = this.#head.get(partitionId) ?? []
    return { events: found, next: place !== undefined && comparePlaces(place, head) > 0 ? place : head }
  }

  /** Whether a partition was read to its end: events of a later epoch are loaded after it. */
  #hasEnded(partitionId: PartitionId): boolean {
    const { epoch } = partsOf(partitionId)
    const { readable, loaded } = this.#extents.get(partitionId) ?? { readable: 0, loaded: 0 }
    const [read = 0] = this.#head.get(partitionId) ?? []
    return read >= Math.max(readable, loaded) && [...this.#extents.keys()].some((other) => partsOf(other).epoch > epoch)
  }

  /** Drops an eighth of the longest partition. */
  #dropOldest(): void {
    const [longest] = [...this.#recent.values()].sort((a, b) => b.events.length - a.events.length)
    const dropped = longest?.events.splice(0, Math.ceil(longest.events.length / 8)) ?? []
    for (const event of dropped) this.#bytes -= bytesOf(event)
    if (longest !== undefined) longest.start = dropped.at(-1)?.next ?? longest.start
  }
}

function bytesOf({ body }: StreamEvent): number {
  return EVENT_BYTES + body.length
}

/** Returns the index of the first event after a place. */
function firstBehind(events: readonly StreamEvent[], place: Place | undefined): number {
  let low = 0
  let high = events.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (comparePlaces(events[middle]?.next, place) > 0) high = middle
    else low = middle + 1
  }
  return low
}
