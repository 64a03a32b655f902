import {
  CHANGE_OVERLAP_VERSIONS,
  CHANGED_CHANNEL,
  type DataChanges,
  FIRST_GENERATION,
  INSTANTS_END_MS,
  parseJson,
  type ServingTables,
  SharedRun,
  type VersionedChange,
  WRITE_NOUNS,
  WriteChange
} from '@gamenet/schemas'
import type { WriteChanges } from '../write-side.js'
import { ChangeTrack, type Horizon, KEYED_BLOCKS_HELD_BY_HOUR, minutesHeldFromMs, type Span } from './change-track.js'
import type { Dependency } from './endpoint.js'

/** The key under which a projection writes that many keys changed. */
const MANY_KEYS = '*'
const MINUTE_MS = 60_000
const ALL_TIME: Span = { fromMs: 0, toMs: INSTANTS_END_MS }
/** Delay after a failed refresh. Where changes arrive by callback, nothing else would retry before the next change. */
const RETRY_MS = 250

type Tracks = { readonly all: ChangeTrack; readonly many: ChangeTrack; readonly byKey: Map<string, ChangeTrack> }

/**
 * The table `data_change` in memory: which data version each span of each projection has; and which tables are read.
 * The same changes give the same versions in every process, whatever their order of arrival and however often. A change
 * of the write side is announced before it is in the tables, and has a version of this process until then.
 */
export class DataVersions {
  readonly #changes: DataChanges
  readonly #readServing: () => Promise<ServingTables>
  readonly #arrived: (serving: ServingTables, projections: readonly string[] | 'all') => Promise<void>
  readonly #onFailure: (error: unknown) => void
  readonly #horizon: Horizon = { newestMinute: 0 }
  readonly #projections = new Map<string, Tracks>()
  /** Of the changes in the table. */
  #newest = 0
  /** The recent changes whose rows have arrived. */
  #awaited: ReadonlySet<string> = new Set()
  /** Of the announced changes of the write side. */
  #newestAnnounced = 0
  #serving = FIRST_GENERATION
  #revision = 0
  #repeatedReads = 0
  #isCurrent = false
  #hasBeenCurrent = false
  readonly #reading = new SharedRun(() => this.#learn())
  #retry: NodeJS.Timeout | undefined
  #isStopped = false
  readonly #onChange = new Set<() => void>()
  #poll: { timer: NodeJS.Timeout | undefined } | undefined

  /**
   * @param needs.serving default: tables that are never swapped
   * @param needs.arrived resolves when queries see the rows of changes; default: they always do
   */
  constructor(needs: {
    readonly changes: DataChanges
    readonly serving?: () => Promise<ServingTables>
    readonly arrived?: (serving: ServingTables, projections: readonly string[] | 'all') => Promise<void>
    readonly onFailure?: (error: unknown) => void
  }) {
    this.#changes = needs.changes
    this.#readServing = needs.serving ?? (async () => FIRST_GENERATION)
    this.#arrived = needs.arrived ?? (async () => undefined)
    this.#onFailure = needs.onFailure ?? (() => undefined)
  }

  /** The tables that are read, as of the newest refresh. An answer takes them once and uses them to its end. */
  get serving(): ServingTables {
    return this.#serving
  }

  /** Rises with every new change; no version changes while it is the same, and the same tables are read. */
  get revision(): number {
    return this.#revision
  }

  /** Whether the last refresh succeeded. Until one does, answers may be older than the tables. */
  get isCurrent(): boolean {
    return this.#isCurrent
  }

  /** Whether any refresh has succeeded. Before one has, no answer can be given. */
  get hasBeenCurrent(): boolean {
    return this.#hasBeenCurrent
  }

  /** The version of what an answer reads: the newest change that overlaps it, 0 when there is none. */
  versionOf({ projection, key, fromMs, toMs }: Dependency): number {
    const tracks = this.#projections.get(projection)
    if (tracks === undefined) return 0
    const isWhole = fromMs === undefined && toMs === undefined
    const span = isWhole ? undefined : { fromMs: fromMs ?? 0, toMs: toMs ?? INSTANTS_END_MS }
    if (key === undefined) return tracks.all.versionOf(span)
    return Math.max(tracks.many.versionOf(span), tracks.byKey.get(key)?.versionOf(span) ?? 0)
  }

  /**
   * Reads which tables are read, and new changes. Resolves when everything that was stored at the call is known; calls
   * during a run share the next one. Rejects when the tables cannot be queried: known versions stay, and it retries
   * automatically until `stop`.
   */
  refresh(): Promise<void> {
    return this.#reading.run()
  }

  /** Refreshes for a read that met a dropped table and is repeated, and counts it. */
  refreshDropped(): Promise<void> {
    this.#repeatedReads += 1
    return this.refresh()
  }

  /** Reads that were repeated because a table was dropped before they ended. */
  get repeatedReads(): number {
    return this.#repeatedReads
  }

  /** Refreshes now and every `intervalMs`, until `stop`. Reports and retries a failed refresh. */
  async start(intervalMs: number): Promise<void> {
    const poll: { timer: NodeJS.Timeout | undefined } = { timer: undefined }
    this.#poll = poll
    const tick = async (): Promise<void> => {
      await this.refresh().catch((error) => this.#onFailure(error))
      if (this.#poll !== poll) return
      poll.timer = setTimeout(() => void tick(), intervalMs)
      poll.timer.unref()
    }
    await tick()
  }

  /** Calls a function after each refresh that found changes or other tables; returns the function that ends it. */
  onChange(call: () => void): () => void {
    this.#onChange.add(call)
    return () => this.#onChange.delete(call)
  }

  /**
   * Records that the write side has changed a profile or its ratings, so that no later answer is older than this
   * change. The projections' changes follow through the table.
   */
  recordWrite([noun, userKey]: WriteChange): void {
    this.#recordAnnounced(noun, userKey)
  }

  /**
   * Listens for changes of the write side by any process; returns the function that ends it. Notifications sent before
   * listening began are lost, so everything counts as changed then.
   */
  follow(changes: WriteChanges): () => Promise<void> {
    const onPayload = (payload: string): void => {
      const change = readChange(payload)
      if (change === undefined) this.#onFailure(new Error(`${CHANGED_CHANNEL} sent ${payload.slice(0, 200)}`))
      else this.recordWrite(change)
    }
    return changes.listen(CHANGED_CHANNEL, onPayload, () => {
      for (const noun of WRITE_NOUNS) this.#recordAnnounced(noun, MANY_KEYS)
    })
  }

  /** Ends all automatic refreshes and waits for a running one. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#retry)
    clearTimeout(this.#poll?.timer)
    this.#poll = undefined
    await this.#reading.idle()
  }

  async #learn(): Promise<void> {
    const before = this.#revision
    try {
      if (this.#newest === 0) await this.#findHorizon()
      const after = Math.max(0, this.#newest - CHANGE_OVERLAP_VERSIONS)
      const changes = await this.#changes.since(after, minutesHeldFromMs(this.#horizon))
      // After the changes: a step behind a swap stores rows and its change, and the former tables lack those rows.
      const serving = await this.#readServing()
      await this.#awaitRows(serving, changes)
      this.#serve(serving)
      this.#take(changes)
      this.#isCurrent = true
      this.#hasBeenCurrent = true
      if (this.#revision !== before) for (const call of this.#onChange) call()
    } catch (error) {
      this.#isCurrent = false
      this.#tryAgainLater()
      throw error
    }
  }

  /** Once for each change, and for all tables after a swap: no answer waits. */
  async #awaitRows(serving: ServingTables, changes: readonly VersionedChange[]): Promise<void> {
    const keyOf = ({ projection, version }: VersionedChange) => `${projection} ${version}`
    const isWhole = !this.#hasBeenCurrent || serving.counter > this.#serving.counter
    const fresh = new Set(changes.filter((each) => !this.#awaited.has(keyOf(each))).map(({ projection }) => projection))
    if (isWhole || fresh.size > 0) await this.#arrived(serving, isWhole ? 'all' : [...fresh])
    const newest = changes.reduce((most, { version }) => Math.max(most, version), this.#newest)
    const recent = changes.filter(({ version }) => version > newest - CHANGE_OVERLAP_VERSIONS)
    this.#awaited = new Set(recent.map(keyOf))
  }

  /** Never back: what a former read gave late is ignored. */
  #serve(serving: ServingTables): void {
    if (serving.counter <= this.#serving.counter) return
    this.#serving = serving
    this.#revision += 1
  }

  #tryAgainLater(): void {
    clearTimeout(this.#retry)
    if (this.#isStopped || this.#poll !== undefined) return
    this.#retry = setTimeout(() => void this.refresh().catch((error) => this.#onFailure(error)), RETRY_MS)
    this.#retry.unref()
  }

  /** Before the first load: the horizon decides how coarsely older changes may be read. */
  async #findHorizon(): Promise<void> {
    const newestMs = await this.#changes.newestBegin()
    this.#horizon.newestMinute = Math.max(this.#horizon.newestMinute, Math.floor(newestMs / MINUTE_MS))
  }

  #take(changes: readonly VersionedChange[]): void {
    let newestMinute = this.#horizon.newestMinute
    for (const change of changes) newestMinute = Math.max(newestMinute, Math.floor(change.fromMs / MINUTE_MS))
    for (const change of changes) this.#newest = Math.max(this.#newest, change.version)
    const hasMoved = newestMinute > this.#horizon.newestMinute
    this.#horizon.newestMinute = newestMinute
    let isNew = hasMoved
    for (const change of changes) isNew = this.#record(change) || isNew
    if (hasMoved) for (const tracks of this.#projections.values()) prune(tracks)
    if (isNew) this.#revision += 1
  }

  /** Its version is above all known ones, so that it is new even where the clock of another process is ahead. */
  #recordAnnounced(projection: string, key: string): void {
    this.#newestAnnounced = Math.max(Date.now() * 1000, this.#newestAnnounced + 1, this.#newest + 1)
    this.#record({ projection, key, version: this.#newestAnnounced, ...ALL_TIME })
    this.#revision += 1
  }

  #record(change: VersionedChange): boolean {
    let tracks = this.#projections.get(change.projection)
    if (tracks === undefined) {
      tracks = { all: new ChangeTrack(this.#horizon), many: new ChangeTrack(this.#horizon), byKey: new Map() }
      this.#projections.set(change.projection, tracks)
    }
    const isNew = tracks.all.record(change, change.version)
    return this.#trackOf(tracks, change.key).record(change, change.version) || isNew
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

const readChange = (payload: string): WriteChange | undefined => WriteChange.safeParse(parseJson(payload)).data

function prune({ all, many, byKey }: Tracks): void {
  all.prune()
  many.prune()
  for (const track of byKey.values()) track.prune()
}
