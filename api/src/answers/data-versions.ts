import { CHANGED_CHANNEL, INSTANTS_END_MS, WRITE_NOUNS, WriteChange } from '@gamenet/schemas'
import type { ReadTables } from '../read-tables.js'
import type { WriteChanges } from '../write-side.js'
import type { Dependency } from './answer.js'
import {
  ChangeTrack,
  type Horizon,
  KEYED_BLOCKS_HELD_BY_HOUR,
  minutesHeldFromMs,
  type Stretch
} from './change-track.js'

/** The key under which a projection writes that many keys changed. */
const MANY_KEYS = '*'
const MINUTE_MS = 60_000
/**
 * How far behind the newest version each refresh looks again, in versions (microseconds): with several projectors a
 * change can become visible after one with a higher version. Reading a change twice makes no difference.
 */
const OVERLAP = 60_000_000
const ALL_TIME: Stretch = { fromMs: 0, toMs: INSTANTS_END_MS }
/** After a refresh that failed. Where a callback tells of changes, nothing else would ask again before the next one. */
const RETRY_MS = 250

/** One row of `data_change`. */
type Change = Stretch & { readonly projection: string; readonly key: string; readonly version: number }

type Tracks = { readonly all: ChangeTrack; readonly many: ChangeTrack; readonly byKey: Map<string, ChangeTrack> }

/**
 * What changed, kept in memory from the table `data_change`: which data version each stretch of each projection has.
 * The same changes give the same versions in every process, whatever their order of arrival and however often. A change
 * of the write side is heard of before it is in the tables, and has a version of this process until it is.
 */
export class DataVersions {
  readonly #tables: ReadTables
  readonly #onFailure: (error: unknown) => void
  readonly #horizon: Horizon = { newestMinute: 0 }
  readonly #projections = new Map<string, Tracks>()
  /** Of the changes in the table. */
  #newest = 0
  /** Of the changes that were heard of. */
  #newestHeard = 0
  /** Of what was taken for changed because the table could not be asked. */
  #newestOutdated = 0
  #revision = 0
  #isCurrent = false
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #isStopped = false
  #poll: { timer: NodeJS.Timeout | undefined } | undefined

  constructor(needs: { tables: ReadTables; onFailure?: (error: unknown) => void }) {
    this.#tables = needs.tables
    this.#onFailure = needs.onFailure ?? (() => undefined)
  }

  /** Rises with everything that is learnt; as long as it stands still, so does every version. */
  get revision(): number {
    return this.#revision
  }

  /** Whether the last refresh succeeded. Until one does, answers may be older than the tables. */
  get isCurrent(): boolean {
    return this.#isCurrent
  }

  /** The version of what an answer reads: the newest change that overlaps it, 0 when there is none. */
  versionOf({ projection, key, fromMs, toMs }: Dependency): number {
    const tracks = this.#projections.get(projection)
    if (tracks === undefined) return 0
    const isWhole = fromMs === undefined && toMs === undefined
    const stretch = isWhole ? undefined : { fromMs: fromMs ?? 0, toMs: toMs ?? INSTANTS_END_MS }
    if (key === undefined) return tracks.all.versionOf(stretch)
    return Math.max(tracks.many.versionOf(stretch), tracks.byKey.get(key)?.versionOf(stretch) ?? 0)
  }

  /**
   * Learns what has changed. Resolves when everything that stood in the table at the call is known; calls that come
   * while one runs share the next one. Rejects when the tables cannot be asked; what is known stays, and it is tried
   * again by itself until `stop`.
   */
  refresh(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#learn().finally(() => {
        this.#running = undefined
      })
      return this.#running
    }
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        return this.refresh()
      })
    return this.#next
  }

  /** Refreshes now and then every `intervalMs`, until `stop`. A failed one is reported and tried again. */
  async start(intervalMs: number): Promise<void> {
    const poll: { timer: NodeJS.Timeout | undefined } = { timer: undefined }
    this.#poll = poll
    const turn = async (): Promise<void> => {
      await this.refresh().catch((error) => this.#onFailure(error))
      if (this.#poll !== poll) return
      poll.timer = setTimeout(() => void turn(), intervalMs)
      poll.timer.unref()
    }
    await turn()
  }

  /**
   * Takes in that the write side has changed a profile, or ratings of it, at once: what is answered from now on is not
   * older. The projections' changes follow through the table.
   */
  hear([noun, userKey]: WriteChange): void {
    this.#hearOf(noun, userKey)
  }

  /**
   * Takes everything of these projections as changed, where the table cannot be asked whose newest row says so. Each call stands
   * for one such row, whose version is this one at least: so none of a later change is below it, wherever the clock goes.
   */
  outdate(projections: readonly string[]): void {
    this.#newestOutdated = Math.max(this.#newestOutdated, this.#newest) + 1
    for (const projection of projections) {
      this.#record({ projection, key: MANY_KEYS, version: this.#newestOutdated, ...ALL_TIME })
    }
    this.#revision += 1
  }

  /**
   * Hears of every change of the write side, in whatever process it is made, until the function that it gives is called.
   * What was told while nobody listened is not known: then everything is taken as changed.
   */
  follow(changes: WriteChanges): () => Promise<void> {
    const onPayload = (payload: string): void => {
      const change = readChange(payload)
      if (change === undefined) this.#onFailure(new Error(`${CHANGED_CHANNEL} told of ${payload.slice(0, 200)}`))
      else this.hear(change)
    }
    return changes.listen(CHANGED_CHANNEL, onPayload, () => {
      for (const noun of WRITE_NOUNS) this.#hearOf(noun, MANY_KEYS)
    })
  }

  /** Ends all refreshing by itself; one that is under way is waited for. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#retry)
    clearTimeout(this.#poll?.timer)
    this.#poll = undefined
    await this.#running?.catch(() => undefined)
  }

  async #learn(): Promise<void> {
    try {
      if (this.#newest === 0) await this.#findHorizon()
      const rows = await this.#tables.rows(CHANGES_SINCE, {
        after: String(Math.max(0, this.#newest - OVERLAP)),
        minutes_from: String(minutesHeldFromMs(this.#horizon)),
        end: String(INSTANTS_END_MS)
      })
      this.#take(rows.map(changeOf))
      this.#isCurrent = true
    } catch (error) {
      this.#isCurrent = false
      this.#tryAgainLater()
      throw error
    }
  }

  #tryAgainLater(): void {
    clearTimeout(this.#retry)
    if (this.#isStopped || this.#poll !== undefined) return
    this.#retry = setTimeout(() => void this.refresh().catch((error) => this.#onFailure(error)), RETRY_MS)
    this.#retry.unref()
  }

  /** Before the first load: the horizon decides how coarsely older changes may be read. */
  async #findHorizon(): Promise<void> {
    const [row] = await this.#tables.rows(NEWEST_BEGIN, { end: String(INSTANTS_END_MS) })
    const newestMs = wholeNumber(row, 'newest_from_ms')
    this.#horizon.newestMinute = Math.max(this.#horizon.newestMinute, Math.floor(newestMs / MINUTE_MS))
  }

  #take(changes: readonly Change[]): void {
    let newestMinute = this.#horizon.newestMinute
    for (const change of changes) newestMinute = Math.max(newestMinute, Math.floor(change.fromMs / MINUTE_MS))
    for (const change of changes) this.#newest = Math.max(this.#newest, change.version)
    const hasMoved = newestMinute > this.#horizon.newestMinute
    this.#horizon.newestMinute = newestMinute
    let isNews = hasMoved
    for (const change of changes) isNews = this.#record(change) || isNews
    if (hasMoved) for (const tracks of this.#projections.values()) forget(tracks)
    if (isNews) this.#revision += 1
  }

  /** The version is above all that are known, so that it is news even where another clock is ahead of ours. */
  #hearOf(projection: string, key: string): void {
    this.#newestHeard = Math.max(Date.now() * 1000, this.#newestHeard + 1, this.#newest + 1)
    this.#record({ projection, key, version: this.#newestHeard, ...ALL_TIME })
    this.#revision += 1
  }

  #record(change: Change): boolean {
    let tracks = this.#projections.get(change.projection)
    if (tracks === undefined) {
      tracks = { all: new ChangeTrack(this.#horizon), many: new ChangeTrack(this.#horizon), byKey: new Map() }
      this.#projections.set(change.projection, tracks)
    }
    const isNews = tracks.all.record(change, change.version)
    return this.#trackOf(tracks, change.key).record(change, change.version) || isNews
  }

  #trackOf(tracks: Tracks, key: string): ChangeTrack {
    if (key === MANY_KEYS) return tracks.many
    let track = tracks.byKey.get(key)
    if (track === undefined) {
      track = new ChangeTrack(this.#horizon, KEYED_BLOCKS_HELD_BY_HOUR)
      tracks.byKey.set(key, track)
    }
    return track
  }
}

const NEWEST_BEGIN = `
  SELECT max(least(c.from_ms, {end: Int64} - 1)) AS newest_from_ms
  FROM data_change AS c`

// Years of changes come as one row for each stretch of whole hours (or minutes, where they still count), not one a step.
const CHANGES_SINCE = `
  SELECT c.projection AS projection,
         c.key AS key,
         if(c.to_ms > {minutes_from: Int64}, 60000, 3600000) AS width_ms,
         intDiv(greatest(c.from_ms, 0), width_ms) * width_ms AS first_ms,
         intDiv(greatest(least(c.to_ms, {end: Int64}), c.from_ms + 1) + width_ms - 1, width_ms) * width_ms AS last_ms,
         max(c.version) AS newest_version
  FROM data_change AS c
  WHERE c.version > {after: UInt64}
  GROUP BY projection, key, width_ms, first_ms, last_ms`

function readChange(payload: string): WriteChange | undefined {
  try {
    return WriteChange.parse(JSON.parse(payload))
  } catch {
    return undefined
  }
}

function changeOf(row: Record<string, unknown>): Change {
  return {
    projection: String(row.projection),
    key: String(row.key),
    fromMs: wholeNumber(row, 'first_ms'),
    toMs: wholeNumber(row, 'last_ms'),
    version: wholeNumber(row, 'newest_version')
  }
}

function wholeNumber(row: Record<string, unknown> | undefined, column: string): number {
  const value = Number(row?.[column])
  if (Number.isSafeInteger(value)) return value
  throw new Error(`data_change gave ${JSON.stringify(row?.[column])} as ${column}, expected an integer below 2^53`)
}

function forget({ all, many, byKey }: Tracks): void {
  all.forget()
  many.forget()
  for (const track of byKey.values()) track.forget()
}
