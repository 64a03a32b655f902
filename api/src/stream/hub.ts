import { Refusal, SharedRun } from '@gamenet/schemas'
import { atOneInstant, type ReadNeeds } from '../answers/one-instant.js'
import { checkpointsOf } from '../queries/stream.js'
import { Channel, Progress } from './channel.js'
import {
  comparePartitionIds,
  comparePlaces,
  cursorOf,
  type PartitionId,
  type Place,
  partitionIdOf,
  partsOf,
  readCursor
} from './cursor.js'
import { Feed } from './feed.js'
import {
  passes,
  type ReadContext,
  type RecordedKind,
  readPage,
  type StreamEvent,
  type StreamFilter,
  sourceOf
} from './kinds.js'
import { RetriedRun } from './retried-run.js'

/*
 * feed      one kind in this process; its recent events are in memory
 * channel   all listeners with one filter
 * live      a listener that is at the head of every feed of its channel: it receives what is added to them
 * catch-up  what brings a listener there: pages of the tables as long as it is behind the recent events, then those
 */

/** Rows per page of a feed. */
const PAGE_ROWS = 2000
/** Delays until the next look while events are loaded that cannot be read yet. */
const BEHIND_MS_MIN = 10
const BEHIND_MS_MAX = 250
/** Pages that are read for listeners at the same time: the other answers need the engine, too. */
const READS_MAX = 4

export type HubNeeds = ReadNeeds & {
  /** The epoch of new events. */
  readonly epoch: number
  /** Offsets behind the head of each partition that a feed begins with: reconnected listeners need no query for them. */
  readonly recentOffsets: number
  /** Called for each look for new events and each page of history that is read from the tables. */
  readonly onRead: () => void
  readonly onFailure: (error: unknown) => void
}

/** A partition in which a listener needs a page of the tables. */
export type PartitionBehind = { readonly kind: RecordedKind; readonly partitionId: PartitionId }
type Extent = { readonly partitionId: PartitionId; readonly readable: number; readonly loaded: number }
type Read = {
  readonly feed: Feed
  readonly partitionId: PartitionId
  readonly next: Place
  readonly events: readonly StreamEvent[]
}

/** Reads new events once for all listeners. */
export class Hub {
  /** Of pages that clients have not read yet. */
  unsentCharacters = 0
  readonly #needs: HubNeeds
  readonly #feeds = new Map<RecordedKind, Feed>()
  /** By their filter: its fingerprint takes longer than all else that a connection needs here. */
  readonly #channels = new Map<string, Channel>()
  readonly #advancing = new SharedRun(() => this.#advance())
  readonly #closed = new AbortController()
  readonly #unsubscribe: () => void
  readonly #looking: RetriedRun
  #delayMs = BEHIND_MS_MIN
  /** Rises when recent events are dropped: what was read before may name an erased user. */
  #generation = 0
  #reads = 0
  readonly #waitingReads = new Set<() => void>()
  readonly #onAdvance = new Set<() => void>()

  constructor(needs: HubNeeds) {
    this.#needs = needs
    this.#looking = new RetriedRun(() => this.#advancing.run(), needs.onFailure)
    this.#unsubscribe = needs.versions.onChange(() => this.#wake())
  }

  get channels(): Iterable<Channel> {
    return this.#channels.values()
  }

  /** Joins the channel of a filter; `leave` ends that. */
  join(filter: StreamFilter): Channel {
    const key = JSON.stringify(filter)
    const channel = this.#channels.get(key) ?? new Channel(filter)
    this.#channels.set(key, channel)
    channel.connections += 1
    return channel
  }

  leave(channel: Channel): void {
    channel.connections -= 1
    if (channel.connections === 0) this.#channels.delete(JSON.stringify(channel.filter))
  }

  /** Stops to follow the tables: nobody listens. */
  rest(): void {
    if (this.#channels.size > 0) return
    this.#feeds.clear()
  }

  /** Forgets recent events, because a user was erased or an import is undone. */
  dropRecent(): void {
    this.#generation += 1
    for (const feed of this.#feeds.values()) feed.dropRecent()
  }

  close(): void {
    this.#unsubscribe()
    this.#looking.close()
    this.#closed.abort()
    for (const next of [...this.#waitingReads]) next()
    this.#notify()
  }

  /** Returns where a listener begins: at the start, now, or at a cursor. Refuses a cursor that cannot be of this filter. */
  async begin(channel: Channel, after: string): Promise<Progress> {
    const { kinds, fingerprint } = channel
    const feeds = kinds.map((kind) => this.#feed(kind))
    const given = after === 'start' || after === 'now' ? [] : readCursor(fingerprint, kinds.length, after)
    const isAhead = () => given.some((position, n) => feeds[n]?.isAhead(position))
    if (feeds.some((feed) => !feed.isKnown) || isAhead()) await this.#advancing.run()
    if (given.some((position, n) => feeds[n]?.isBeyond(position, this.#needs.epoch))) {
      throw new Refusal('cursor_invalid', ['it is beyond everything that this service has recorded'])
    }
    return new Progress(channel, after === 'now' ? feeds.map(({ now }) => now) : given)
  }

  /** The cursor of a channel's live listeners; undefined if it has only states. */
  cursorOf({ fingerprint, kinds }: Channel): string | undefined {
    if (kinds.length === 0) return undefined
    return cursorOf(
      fingerprint,
      kinds.map((kind) => this.#feed(kind).headText)
    )
  }

  /**
   * Returns at most `limit` events behind a progress; their consumer moves it past them. The progress is moved past a
   * partition that has no event left. Without events, the listener is at the head of these kinds until control returns to
   * the event loop.
   */
  recent(channel: Channel, progress: Progress, limit: number): readonly StreamEvent[] {
    const events: StreamEvent[] = []
    for (const kind of channel.kinds) {
      const feed = this.#feed(kind)
      if (!feed.covers(progress.of(kind))) continue
      for (const partitionId of [...feed.head.keys()].sort(comparePartitionIds)) {
        if (events.length >= limit) return events
        const place = progress.of(kind).get(partitionId)
        const found = feed.since(partitionId, place, limit - events.length, (event) => passes(event, channel.filter))
        events.push(...found.events)
        if (found.events.length === 0) progress.move(kind, partitionId, found.next)
      }
    }
    return events
  }

  /** Whether a listener can be live: it has no event left, and none of its places is beyond what this process has read. */
  isAtHead({ kinds }: Channel, progress: Progress): boolean {
    return kinds.every((kind) => {
      const feed = this.#feed(kind)
      return feed.isReached(progress.of(kind)) && !feed.isAhead(progress.of(kind))
    })
  }

  /** Returns the partition whose next page has to be read from the tables; undefined if the rest are recent events. */
  behind(channel: Channel, progress: Progress): PartitionBehind | undefined {
    const kinds = channel.kinds.filter((kind) => !this.#feed(kind).covers(progress.of(kind)))
    // By chance, so that no kind waits for the history of another one.
    const kind = kinds[Math.floor(Math.random() * kinds.length)]
    if (kind === undefined) return undefined
    const feed = this.#feed(kind)
    const partitionId = [...feed.head.keys()]
      .sort(comparePartitionIds)
      .find((partitionId) => comparePlaces(progress.of(kind).get(partitionId), feed.head.get(partitionId)) < 0)
    return partitionId === undefined ? undefined : { kind, partitionId }
  }

  /**
   * Reads the next page of a partition from the tables. `done` moves the progress behind it, when its events are consumed.
   * A page that is not readable yet needs a wait until the hub has `advanced`: older tables are served after a rollback.
   * Nothing is readable once the hub is closed.
   */
  async read(
    { kind, partitionId }: PartitionBehind,
    channel: Channel,
    progress: Progress,
    limit: number,
    signal: AbortSignal
  ): Promise<{ readonly events: readonly StreamEvent[]; readonly isReadable: boolean; done(): void }> {
    const feed = this.#feed(kind)
    const place = progress.of(kind).get(partitionId) ?? []
    const read = async (): Promise<{ next: Place; events: readonly StreamEvent[] }> => {
      if (this.#closed.signal.aborted) return { next: place, events: [] }
      this.#needs.onRead()
      const generation = this.#generation
      const page = await atOneInstant(this.#needs, signal, async (context) => {
        const extents = await this.#extents([feed], context)
        const readable = extents.get(kind)?.find((extent) => extent.partitionId === partitionId)?.readable ?? 0
        const endOffset = Math.min(readable, feed.head.get(partitionId)?.[0] ?? 0)
        if (endOffset <= (place[0] ?? 0)) return { next: place, events: [] }
        const range = { partitionId, place, endOffset, limit }
        const { next, toEvents } = await readPage(kind, range, channel.filter, context)
        return { next, events: await toEvents(context) }
      })
      return generation === this.#generation ? page : await read()
    }
    const { next, events } = await this.#limited(read, signal)
    const isReadable = comparePlaces(next, place) > 0
    return { events, isReadable, done: () => progress.move(kind, partitionId, next) }
  }

  /** Where the live listeners of a channel stand. */
  progressOf(channel: Channel): Progress {
    return new Progress(
      channel,
      channel.kinds.map((kind) => this.#feed(kind).head)
    )
  }

  /** Resolves when new events were read, or the hub has closed, or the signal aborts. */
  async advanced(signal: AbortSignal): Promise<void> {
    if (!this.#closed.signal.aborted) await called(this.#onAdvance, signal)
  }

  #feed(kind: RecordedKind): Feed {
    let feed = this.#feeds.get(kind)
    if (feed === undefined) {
      feed = new Feed(kind)
      this.#feeds.set(kind, feed)
    }
    return feed
  }

  async #limited<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    if (this.#reads < READS_MAX) this.#reads += 1
    else if (!(await called(this.#waitingReads, signal))) throw signal.reason
    try {
      signal.throwIfAborted()
      return await work()
    } finally {
      // The next one takes its place.
      const [next] = this.#waitingReads
      if (next === undefined) this.#reads -= 1
      else next()
    }
  }

  #wake(): void {
    if (this.#feeds.size === 0 || this.#closed.signal.aborted) return
    this.#delayMs = BEHIND_MS_MIN
    this.#looking.after(0)
  }

  /** Reads a page of each partition that has something new; runs again at once if it had, later if more is loaded. */
  async #advance(): Promise<void> {
    this.#needs.onRead()
    const generation = this.#generation
    const feeds = [...this.#feeds.values()]
    const { pages, isBehind } = await atOneInstant(this.#needs, this.#closed.signal, (context) =>
      this.#look(feeds, context)
    )
    const written = generation === this.#generation ? pages.flatMap((page) => this.#apply(page)) : []
    this.#notify()
    await Promise.all(written)
    if (pages.length > 0) {
      this.#delayMs = BEHIND_MS_MIN
      this.#looking.after(0)
    } else if (isBehind) {
      this.#looking.after(this.#delayMs)
      this.#delayMs = Math.min(BEHIND_MS_MAX, this.#delayMs * 2)
    }
  }

  /** Reads a page of each partition that has something new. */
  async #look(feeds: readonly Feed[], context: ReadContext): Promise<{ pages: Read[]; isBehind: boolean }> {
    const extents = await this.#extents(feeds, context)
    let isBehind = false
    const pages: Promise<Read>[] = []
    for (const feed of feeds) {
      const partitions = extents.get(feed.kind) ?? []
      const newestEpoch = Math.max(...partitions.map(({ partitionId }) => partsOf(partitionId).epoch))
      for (const { partitionId, readable, loaded } of partitions) {
        if (loaded > readable) isBehind = true
        if (feed.head.has(partitionId)) continue
        const isNewest = partsOf(partitionId).epoch === newestEpoch
        // Live listeners are at the beginning of a partition that is new.
        const offsets = feed.isKnown ? Number.POSITIVE_INFINITY : isNewest ? this.#needs.recentOffsets : 0
        feed.begin(partitionId, [Math.max(0, readable - offsets)])
      }
      feed.setExtents(partitions)
      const unread = partitions.filter(({ partitionId, readable }) => (feed.head.get(partitionId)?.[0] ?? 0) < readable)
      for (const { partitionId, readable } of firstEpochOf(unread)) {
        const range = { partitionId, place: feed.head.get(partitionId) ?? [], endOffset: readable, limit: PAGE_ROWS }
        pages.push(
          readPage(feed.kind, range, undefined, context).then(async ({ next, toEvents }) => ({
            feed,
            partitionId,
            next,
            events: await toEvents(context)
          }))
        )
      }
    }
    return { pages: await Promise.all(pages), isBehind }
  }

  async #extents(feeds: readonly Feed[], { positions }: ReadContext): Promise<Map<RecordedKind, Extent[]>> {
    const names = feeds.map(({ kind }) => checkpointsOf(sourceOf(kind)))
    const rows = await positions([...new Set(names.flatMap(({ readable, loaded }) => [readable, loaded]))])
    const extents = new Map<RecordedKind, Extent[]>()
    for (const [n, { kind }] of feeds.entries()) {
      const partitions = new Map<PartitionId, Extent>()
      for (const { name, epoch, partition, next } of rows) {
        const partitionId = partitionIdOf({ epoch, partition })
        const extent = partitions.get(partitionId) ?? { partitionId, readable: 0, loaded: 0 }
        if (name === names[n]?.readable) partitions.set(partitionId, { ...extent, readable: next })
        if (name === names[n]?.loaded) partitions.set(partitionId, { ...extent, loaded: next })
      }
      extents.set(kind, [...partitions.values()])
    }
    return extents
  }

  /**
   * Adds a page to its feed and begins to write it to those who are live, synchronously: a listener that joins misses
   * nothing. Returns what resolves when they have it.
   */
  #apply({ feed, partitionId, next, events }: Read): Promise<void>[] {
    const channels = [...this.#channels.values()].filter(
      ({ live, kinds }) => live.size > 0 && kinds.includes(feed.kind)
    )
    for (const event of events) {
      feed.add(event)
      for (const channel of channels) {
        if (passes(event, channel.filter)) channel.add(event, this.cursorOf(channel) ?? '')
      }
    }
    feed.moveTo(partitionId, next)
    if (feed.kind === 'retracted' && events.length > 0) this.dropRecent()
    return channels.map((channel) => channel.flush())
  }

  #notify(): void {
    for (const resolve of [...this.#onAdvance]) resolve()
  }
}

/** Resolves with true when the function that it adds to a set is called, with false when the signal aborts before. */
function called(waiting: Set<() => void>, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isCalled: boolean) => (): void => {
      waiting.delete(call)
      signal.removeEventListener('abort', abort)
      resolve(isCalled)
    }
    const [call, abort] = [end(true), end(false)]
    if (signal.aborted) return resolve(false)
    waiting.add(call)
    signal.addEventListener('abort', abort, { once: true })
  })
}

/** The partitions of the oldest epoch among these: its events of a key come before those of the next epoch. */
function firstEpochOf(extents: readonly Extent[]): Extent[] {
  const epochOf = ({ partitionId }: Extent): number => partsOf(partitionId).epoch
  const first = Math.min(...extents.map(epochOf))
  return extents.filter((extent) => epochOf(extent) === first)
}
