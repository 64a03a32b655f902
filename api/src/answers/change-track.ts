import { INSTANTS_END_MS } from '@gamenet/schemas'

/*
 * track    the newest data version by bucket of time: buckets of a minute for the newest 48 hours, of an hour, and of
 *          1,024 hours (42 days 16 hours)
 * horizon  the newest minute in which any change begins; it decides the width of buckets, so that a track is the same
 *          function of the same changes in every process, whatever their order of arrival
 */

const MINUTE_MS = 60_000
const MINUTES_PER_HOUR = 60
/** Hours in one array: most tracks have a single hour, or all hours. */
const HOURS_PER_DAY = 24
const HOURS_PER_BLOCK = 1024
const MINUTES_PER_BLOCK = MINUTES_PER_HOUR * HOURS_PER_BLOCK

/** Hours before the horizon that have buckets of minutes. */
export const HOURS_HELD_BY_MINUTE = 48
/** Blocks before the horizon in which a track of one key has buckets of hours; a track of all keys has them forever. */
export const KEYED_BLOCKS_HELD_BY_HOUR = 3

/** The newest minute (since 1970) in which a change begins. Shared by all tracks of a process. */
export type Horizon = { newestMinute: number }

/** Returns the first instant that has buckets of minutes. */
export const minutesHeldFromMs = (horizon: Horizon): number => firstHourByMinute(horizon) * MINUTES_PER_HOUR * MINUTE_MS

/** A span of time, half-open, milliseconds since 1970, clipped to 1970 to 2105. */
export type Span = { readonly fromMs: number; readonly toMs: number }

/** The version of any span of time: that of the newest change that overlaps it. */
export class ChangeTrack {
  readonly #horizon: Horizon
  readonly #blocksHeldByHour: number
  /** Newest version of all changes. */
  #newest = 0
  /** Changes of an instant and everything after it. Thousands of keys have only such changes, which need no buckets. */
  readonly #lasting = new LastingChanges()
  /** Block → newest version of the changes that cover it completely; they are in no finer bucket. */
  readonly #blockCover = new Map<number, number>()
  /** Block → newest version of the changes that touch it. */
  readonly #blockNewest = new Map<number, number>()
  /** Day → newest version by hour. */
  readonly #hours = new Map<number, Float64Array>()
  /** Hour → newest version by minute. */
  readonly #minutes = new Map<number, Float64Array>()

  constructor(horizon: Horizon, blocksHeldByHour = Number.POSITIVE_INFINITY) {
    this.#horizon = horizon
    this.#blocksHeldByHour = blocksHeldByHour
  }

  /** Records a change; idempotent and independent of order. Returns true for a new one. */
  record(span: Span, version: number): boolean {
    const range = minutesOf(span)
    if (range === undefined) return false
    let isNew = version > this.#newest
    this.#newest = Math.max(this.#newest, version)
    if (span.toMs >= INSTANTS_END_MS) return this.#lasting.record(this.#heldFrom(range.first), version) || isNew
    for (let block = blockOf(range.first); block <= blockOf(range.last); block += 1) {
      const first = Math.max(range.first, block * MINUTES_PER_BLOCK)
      const last = Math.min(range.last, (block + 1) * MINUTES_PER_BLOCK - 1)
      isNew = raise(this.#blockNewest, block, version) || isNew
      if (last - first === MINUTES_PER_BLOCK - 1) isNew = raise(this.#blockCover, block, version) || isNew
      else if (this.#isHeldByHour(block)) isNew = this.#recordHours(first, last, version) || isNew
    }
    return isNew
  }

  /**
   * Returns the newest version of the changes that overlap a span; 0 if there is none. It is never too old. It is too
   * new if a newer change outside the span shares a bucket with one of its ends: a minute within 48 hours of the
   * horizon, an hour before that, and for single keys a block of 42 days before about four months.
   */
  versionOf(span: Span | undefined): number {
    if (span === undefined) return this.#newest
    const range = minutesOf(span)
    if (range === undefined) return 0
    let newest = this.#lasting.versionUpTo(range.last)
    for (let block = blockOf(range.first); block <= blockOf(range.last); block += 1) {
      const first = Math.max(range.first, block * MINUTES_PER_BLOCK)
      const last = Math.min(range.last, (block + 1) * MINUTES_PER_BLOCK - 1)
      newest = Math.max(newest, this.#versionInBlock(block, first, last))
    }
    return newest
  }

  /** Removes buckets that the horizon has passed. */
  prune(): void {
    this.#lasting.coarsen((minute) => this.#heldFrom(minute))
    const firstHour = firstHourByMinute(this.#horizon)
    for (const hour of this.#minutes.keys()) if (hour < firstHour) this.#minutes.delete(hour)
    for (const day of this.#hours.keys()) {
      if (!this.#isHeldByHour(blockOf((day + 1) * HOURS_PER_DAY * MINUTES_PER_HOUR - 1))) this.#hours.delete(day)
    }
  }

  #recordHours(first: number, last: number, version: number): boolean {
    let isNew = false
    for (let hour = hourOf(first); hour <= hourOf(last); hour += 1) {
      isNew = raiseAt(heldIn(this.#hours, dayOf(hour), HOURS_PER_DAY), hour % HOURS_PER_DAY, version) || isNew
      if (hour < firstHourByMinute(this.#horizon)) continue
      const minutes = heldIn(this.#minutes, hour, MINUTES_PER_HOUR)
      const start = hour * MINUTES_PER_HOUR
      const end = Math.min(last, start + MINUTES_PER_HOUR - 1)
      for (let minute = Math.max(first, start); minute <= end; minute += 1) {
        isNew = raiseAt(minutes, minute - start, version) || isNew
      }
    }
    return isNew
  }

  #versionInBlock(block: number, first: number, last: number): number {
    if (last - first === MINUTES_PER_BLOCK - 1 || !this.#isHeldByHour(block)) return this.#blockNewest.get(block) ?? 0
    let newest = this.#blockCover.get(block) ?? 0
    for (let hour = hourOf(first); hour <= hourOf(last); hour += 1) {
      const start = hour * MINUTES_PER_HOUR
      const isWhole = first <= start && last >= start + MINUTES_PER_HOUR - 1
      newest = Math.max(
        newest,
        isWhole || hour < firstHourByMinute(this.#horizon)
          ? (this.#hours.get(dayOf(hour))?.[hour % HOURS_PER_DAY] ?? 0)
          : newestOf(this.#minutes.get(hour), Math.max(first - start, 0), Math.min(last - start, MINUTES_PER_HOUR - 1))
      )
    }
    return newest
  }

  /** Returns the beginning of the bucket that contains a minute. */
  #heldFrom(minute: number): number {
    if (!this.#isHeldByHour(blockOf(minute))) return blockOf(minute) * MINUTES_PER_BLOCK
    return hourOf(minute) < firstHourByMinute(this.#horizon) ? hourOf(minute) * MINUTES_PER_HOUR : minute
  }

  #isHeldByHour(block: number): boolean {
    return block > blockOf(this.#horizon.newestMinute) - this.#blocksHeldByHour
  }
}

/**
 * Changes without an end: by the minute in which they begin, the newest version of those that begin there or before. A
 * change that begins after a newer one has no effect and is not stored.
 */
class LastingChanges {
  /** Ascending, like the versions in the parallel array. */
  #minutes: number[] = []
  #versions: number[] = []

  /** Returns true for a new one. */
  record(minute: number, version: number): boolean {
    const at = this.#countUpTo(minute)
    if ((this.#versions[at - 1] ?? 0) >= version) return false
    const from = this.#minutes[at - 1] === minute ? at - 1 : at
    let to = at
    while (to < this.#versions.length && (this.#versions[to] ?? 0) <= version) to += 1
    this.#minutes.splice(from, to - from, minute)
    this.#versions.splice(from, to - from, version)
    return true
  }

  /** Returns the newest version of the changes that begin in a minute or before it; 0 if there is none. */
  versionUpTo(minute: number): number {
    return this.#versions[this.#countUpTo(minute) - 1] ?? 0
  }

  /** Moves every beginning to that of its current bucket; of several in one bucket, the newest version stays. */
  coarsen(heldFrom: (minute: number) => number): void {
    const minutes: number[] = []
    const versions: number[] = []
    this.#minutes.forEach((minute, at) => {
      const held = heldFrom(minute)
      const last = minutes[minutes.length - 1] === held ? minutes.length - 1 : minutes.length
      minutes[last] = held
      versions[last] = this.#versions[at] ?? 0
    })
    this.#minutes = minutes
    this.#versions = versions
  }

  /** Returns the number of entries that begin in a minute or before it. */
  #countUpTo(minute: number): number {
    let low = 0
    let high = this.#minutes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#minutes[middle] ?? 0) <= minute) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Returns the minutes that a span touches; undefined for an empty one. */
function minutesOf({ fromMs, toMs }: Span): { first: number; last: number } | undefined {
  const first = Math.floor(Math.max(fromMs, 0) / MINUTE_MS)
  const last = Math.ceil(Math.min(toMs, INSTANTS_END_MS) / MINUTE_MS) - 1
  return first <= last ? { first, last } : undefined
}

const firstHourByMinute = (horizon: Horizon): number => hourOf(horizon.newestMinute) - HOURS_HELD_BY_MINUTE + 1

const blockOf = (minute: number): number => Math.floor(minute / MINUTES_PER_BLOCK)

const hourOf = (minute: number): number => Math.floor(minute / MINUTES_PER_HOUR)

const dayOf = (hour: number): number => Math.floor(hour / HOURS_PER_DAY)

/** Returns the buckets at a place; creates them with version 0. */
function heldIn(places: Map<number, Float64Array>, place: number, buckets: number): Float64Array {
  const held = places.get(place) ?? new Float64Array(buckets)
  places.set(place, held)
  return held
}

function newestOf(minutes: Float64Array | undefined, first: number, last: number): number {
  let newest = 0
  if (minutes !== undefined) for (let m = first; m <= last; m += 1) newest = Math.max(newest, minutes[m] ?? 0)
  return newest
}

function raise(buckets: Map<number, number>, bucket: number, version: number): boolean {
  if ((buckets.get(bucket) ?? 0) >= version) return false
  buckets.set(bucket, version)
  return true
}

function raiseAt(buckets: Float64Array, bucket: number, version: number): boolean {
  if ((buckets[bucket] ?? 0) >= version) return false
  buckets[bucket] = version
  return true
}
