import { Refusal, SharedRun } from '@gamenet/schemas'
import { atOneInstant, type ReadNeeds } from '../http/one-instant.js'
import { checkpointsOf } from '../queries/stream.js'
import { Channel, Progress } from './channel.js'
import {
  CURSOR_CHARACTERS_MAX,
  comparePartitionIds,
  comparePlaces,
  cursorOf,
  invalid,
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
import { Share } from './share.js'

/*
 * feed      one kind in this process; its recent events are in memory
 * channel   all listeners with one filter
 * live      a listener at the head of every feed of its channel: it receives new events as they are added to the feeds
 * catch-up  how a listener gets there: by pages of the tables while it is behind the recent events, then by recent
 *           events
 */

/** Rows per page of a feed. */
const PAGE_ROWS = 2000
/** Range of the delay until the next read while loaded events are not readable yet. */
const BEHIND_MS_MIN = 10
const BEHIND_MS_MAX = 250
/**
 * Concurrent reads of pages; the other answers need the engine, too, whose embedded form has three connections for
 * both.
 */
const READS_MAX = 2

export type HubNeeds = ReadNeeds & {
  /** The epoch of new events. */
  readonly epoch: number
  /** Newest offsets of each partition that a new feed reads: reconnecting listeners need no query for them. */
  readonly recentOffsets: number
  /** Called for each read of new events and of a page of history. */
  readonly onRead: () => void
  readonly onFailure: (error: unknown) => void
}

/** A partition whose next page a listener needs from the tables. */
export type PartitionBehind = { readonly kind: RecordedKind; readonly partitionId: PartitionId }
type Extent = { readonly partitionId: PartitionId; readonly readable: number; readonly loaded: number }
/** What waits for a call, and the earlier reads for its client. */
type Waiting = { readonly call: () => void; readonly reads: number }
type Read = {
  readonly feed: Feed
  readonly partitionId: PartitionId
  readonly next: Place
  readonly events: readonly StreamEvent[]
}

/** Reads new events once for all listeners. */
export class Hub {
  /** Characters of pages that clients have not read yet. */
  unsentCharacters = 0
  /** The turns of all streams. */
  readonly share = new Share()
  readonly #needs: HubNeeds
  readonly #feeds = new Map<RecordedKind, Feed>()
  /** By the filter as JSON: its fingerprint would cost a connection more than everything else here. */
  readonly #channels = new Map<string, Channel>()
  readonly #advancing = new SharedRun(() => this.#advance())
  readonly #closed = new AbortController()
  readonly #unsubscribe: () => void
  readonly #looking: RetriedRun
  #delayMs = BEHIND_MS_MIN
  /** Incremented when recent events are dropped: events read before that may name an erased user. */
  #generation = 0
  #reads = 0
  readonly #waitingReads = new Set<Waiting>()
  #isOldestNext = false
  readonly #onAdvance = new Set<Waiting>()

  constructor(needs: HubNeeds) {
    this.#needs = needs
    this.#looking = new RetriedRun(() => this.#advancing.run(), needs.onFailure)
    this.#unsubscribe = needs.versions.onChange(() => this.#wake())
  }

  get channels(): Iterable<Channel> {
    return this.#channels.values()
  }

  /** Adds a connection to the channel of a filter, until `leave`. */
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

  /** Stops reading new events of kinds that nobody listens to. */
  rest(): void {
    const wanted = new Set([...this.#channels.values()].flatMap(({ kinds }) => kinds))
    for (const kind of this.#feeds.keys()) if (!wanted.has(kind)) this.#feeds.delete(kind)
  }

  /** Drops recent events, because a user was erased or an import undone. */
  dropRecent(): void {
    this.#generation += 1
    for (const feed of this.#feeds.values()) feed.dropRecent()
  }

  close(): void {
    this.#unsubscribe()
    this.#looking.close()
    this.#closed.abort()
    for (const { call } of [...this.#waitingReads]) call()
    this.#notify()
  }

  /**
   * Returns the progress with which a listener begins: at the start, now, or at a cursor. Refuses a cursor that does
   * not fit, by the name of the parameter or header.
   */
  async begin(channel: Channel, after: string, name?: string): Promise<Progress> {
    const { kinds, fingerprint } = channel
    const feeds = kinds.map((kind) => this.#feed(kind))
    const given = after === 'start' || after === 'now' ? [] : readCursor(fingerprint, kinds.length, after, name)
    const isAhead = () => given.some((position, n) => feeds[n]?.isAhead(position))
    if (feeds.some((feed) => !feed.isKnown) || isAhead()) await this.#advancing.run()
    if (given.some((position, n) => feeds[n]?.isBeyond(position, this.#needs.epoch))) {
      throw invalid('it is beyond everything that this service has recorded', name)
    }
    const { length = 0 } = this.cursorOf(channel) ?? ''
    if (length > CURSOR_CHARACTERS_MAX) {
      throw new Refusal('request_invalid', [
        `A cursor of so many kinds has ${length} characters, above ${CURSOR_CHARACTERS_MAX}; ask for fewer kinds`
      ])
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
   * Returns at most `limit` recent events after a progress; the caller moves the progress past them. A partition
   * without further events is passed here. Without any events, the listener is at the head of these kinds until the
   * next turn of the event loop.
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

  /** Whether a listener can become live: it has all events that this process has read, and is not ahead of them. */
  isAtHead({ kinds }: Channel, progress: Progress): boolean {
    return kinds.every((kind) => {
      const feed = this.#feed(kind)
      return feed.isReached(progress.of(kind)) && !feed.isAhead(progress.of(kind))
    })
  }

  /**
   * Returns a partition whose next page must be read from the tables; undefined if all further events are recent ones.
   */
  behind(channel: Channel, progress: Progress): PartitionBehind | undefined {
    const kinds = channel.kinds.filter((kind) => !this.#feed(kind).covers(progress.of(kind)))
    // At random, so that no kind waits for the history of another.
    const kind = kinds[Math.floor(Math.random() * kinds.length)]
    if (kind === undefined) return undefined
    const feed = this.#feed(kind)
    const partitionId = [...feed.head.keys()]
      .sort(comparePartitionIds)
      .find((partitionId) => comparePlaces(progress.of(kind).get(partitionId), feed.head.get(partitionId)) < 0)
    return partitionId === undefined ? undefined : { kind, partitionId }
  }

  /**
   * Reads the next page of a partition from the tables. `done` moves the progress past it once its events are consumed.
   * If it is not readable yet, as after a rollback to older tables, the caller waits until the hub has `advanced`. Once
   * the hub is closed, nothing is readable.
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
    const { next, events } = await this.#limited(read, progress, signal)
    const isReadable = comparePlaces(next, place) > 0
    return { events, isReadable, done: () => progress.move(kind, partitionId, next) }
  }

  /** Returns the progress of the live listeners of a channel. */
  progressOf(channel: Channel): Progress {
    return new Progress(
      channel,
      channel.kinds.map((kind) => this.#feed(kind).head)
    )
  }

  /** Resolves when new events were read, the hub is closed or the signal aborts. */
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

  async #limited<Result>(work: () => Promise<Result>, progress: Progress, signal: AbortSignal): Promise<Result> {
    const { reads } = progress
    progress.reads += 1
    if (this.#reads < READS_MAX) this.#reads += 1
    else if (!(await called(this.#waitingReads, signal, reads))) throw signal.reason
    try {
      signal.throwIfAborted()
      return await work()
    } finally {
      // The next read takes over this one's place.
      const next = this.#nextRead()
      if (next === undefined) this.#reads -= 1
      else next.call()
    }
  }

  /**
   * Returns in turn the read that waits longest, so that none waits forever, and that of the client with the fewest
   * reads, so that it does not wait behind many that read their history.
   */
  #nextRead(): Waiting | undefined {
    this.#isOldestNext = !this.#isOldestNext
    const [oldest, ...others] = this.#waitingReads
    if (this.#isOldestNext || oldest === undefined) return oldest
    return others.reduce((least, each) => (each.reads < least.reads ? each : least), oldest)
  }

  #wake(): void {
    if (this.#feeds.size === 0 || this.#closed.signal.aborted) return
    this.#delayMs = BEHIND_MS_MIN
    this.#looking.after(0)
  }

  /**
   * Reads new events and writes them to live listeners. Runs again at once if there were any, later if some are not
   * readable.
   */
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

  /** Reads a page of each partition with new events. */
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
        // Live listeners are at the start of a new partition.
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
    // A cursor in this order is the shortest.
    const sorted = [...rows].sort((a, b) => a.epoch - b.epoch || a.partition - b.partition)
    const extents = new Map<RecordedKind, Extent[]>()
    for (const [n, { kind }] of feeds.entries()) {
      const partitions = new Map<PartitionId, Extent>()
      for (const { name, epoch, partition, next } of sorted) {
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
   * Adds a page to its feed and starts writing it to live listeners, synchronously: a listener that joins misses
   * nothing. Returns promises of the writes.
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
    for (const { call } of [...this.#onAdvance]) call()
  }
}

/** Adds a call to a set; resolves with true when it is called, with false when the signal aborts first. */
function called(waiting: Set<Waiting>, signal: AbortSignal, reads = 0): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isCalled: boolean) => (): void => {
      waiting.delete(each)
      signal.removeEventListener('abort', abort)
      resolve(isCalled)
    }
    const [each, abort] = [{ call: end(true), reads }, end(false)]
    if (signal.aborted) return resolve(false)
    waiting.add(each)
    signal.addEventListener('abort', abort, { once: true })
  })
}

/** Returns the partitions of the oldest epoch: its events of a key precede those of the next epoch. */
function firstEpochOf(extents: readonly Extent[]): Extent[] {
  const epochOf = ({ partitionId }: Extent): number => partsOf(partitionId).epoch
  const first = Math.min(...extents.map(epochOf))
  return extents.filter((extent) => epochOf(extent) === first)
}
