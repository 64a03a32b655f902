import type { Socket } from 'node:net'
import type { DataVersions } from '@gamenet/api'
import {
  Channel,
  comparePlaces,
  Hub,
  Listener,
  type Place as LogPlace,
  partitionIdOf,
  readCursor
} from '@gamenet/api/internals'
import type { ReadSide } from '@gamenet/projector'
import { importRetractionTopic, leaderboardEntryTopic, Refusal, type Topic, titleCountTopic } from '@gamenet/schemas'
import { undoneImports } from './log-events.js'
import type { Place } from './place.js'
import type { Process } from './process.js'
import type { queriesIn } from './store.js'
import { LATER_TYPE } from './tables/newer-program.js'
import type { Row } from './tables/replacing-table.js'

/*
 * The stream and a client: the real hub and listener on the tables of the world, and a client that outlives processes.
 */

const FILTER = { kinds: ['title-count', 'change'], titleId: null, leaderboardId: null, playerKey: null } as const

type Data = { readonly [name: string]: unknown }
type Received = { readonly kind: string; readonly cursor: string; readonly data: Data }

/** A client of the stream: the events that it has received, and its cursor. */
export class Subscriber {
  readonly received: Received[] = []
  cursor = 'start'
  #connections = 0

  /** Opens a connection; the earlier one is cut, at any frame. */
  connection(): Socket {
    this.#connections += 1
    const number = this.#connections
    const write = (text: string | Uint8Array): boolean => {
      if (number === this.#connections) this.#take(String(text))
      return true
    }
    const none = () => undefined
    const rest = { writableLength: 0, setTimeout: none, once: none, off: none, end: none, destroy: none }
    return { write, ...rest } as unknown as Socket
  }

  #take(lines: string): void {
    for (const line of lines.split('\n')) {
      if (line === '') continue
      const event = JSON.parse(line) as Received | { readonly cursor: string }
      if ('kind' in event) this.received.push(event)
      this.cursor = event.cursor
    }
  }
}

/** The names of titles and boards in the stream. */
const CATALOG = {
  newest: async () => ({ named: (id: string) => ({ shownName: id }) }),
  boards: async () => ({ nameOf: () => '' })
}

/** The stream in a process. */
export class Streaming {
  readonly #place: Place
  readonly #subscriber: Subscriber
  readonly #hub: Hub
  #listener: Listener | undefined
  #connecting: Promise<unknown> = Promise.resolve()
  #isStopped = false

  constructor(
    place: Place,
    process: Process,
    subscriber: Subscriber,
    reads: { readonly tables: ReturnType<typeof queriesIn>; readonly side: ReadSide; readonly versions: DataVersions }
  ) {
    this.#place = place
    this.#subscriber = subscriber
    const { world, bug } = place
    this.#hub = new Hub({
      tables: reads.tables,
      positions: bug.streamSide(reads.side).positions,
      versions: reads.versions,
      catalog: CATALOG,
      recentOffsets: world.chance.oneOf([2, 1000]),
      onRead: () => undefined,
      onFailure: (error: Error) => world.note(`the stream cannot be read: ${error.message}`, process.life)
    } as unknown as ConstructorParameters<typeof Hub>[0])
  }

  /** Connects the subscriber again; resolves when it is live. */
  connect(): Promise<void> {
    const connected = this.#connecting.then(() => this.#connect())
    this.#connecting = connected.catch(() => undefined)
    return connected
  }

  stop(): void {
    this.#isStopped = true
    this.#listener?.end('stopped')
    this.#hub.close()
  }

  async #connect(): Promise<void> {
    const { world, promises } = this.#place
    this.#listener?.end('client')
    const channel = this.#hub.join(FILTER)
    try {
      const progress = await this.#hub.begin(channel, this.#subscriber.cursor)
      this.#listener = new Listener({
        socket: this.#subscriber.connection(),
        hub: withPagesOf(this.#hub, world.chance.between(1, 12)),
        channel,
        format: 'ndjson',
        onEnd: () => this.#hub.leave(channel)
      } as unknown as ConstructorParameters<typeof Listener>[0])
      // The process may have stopped meanwhile.
      if (this.#isStopped) this.#listener.end('stopped')
      await this.#listener.follow(progress)
    } catch (error) {
      if (error instanceof Refusal && error.code === 'cursor_invalid')
        promises.broken.push(`a cursor: ${error.message}`)
      if (this.#listener?.channel === channel) this.#listener.end('failed')
      else this.#hub.leave(channel)
      throw error
    }
  }
}

/** A hub whose pages are short, so that many of them end between two events. */
function withPagesOf(hub: Hub, rows: number): Hub {
  const short = {
    unsentCharacters: 0,
    recent: (...[channel, progress]: Parameters<Hub['recent']>) => hub.recent(channel, progress, rows),
    read: (...[behind, channel, progress, , signal]: Parameters<Hub['read']>) =>
      hub.read(behind, channel, progress, rows, signal),
    behind: hub.behind.bind(hub),
    isAtHead: hub.isAtHead.bind(hub),
    cursorOf: hub.cursorOf.bind(hub),
    progressOf: hub.progressOf.bind(hub),
    advanced: hub.advanced.bind(hub),
    // Turns of the real event loop would block the virtual time.
    share: { turn: async () => undefined }
  }
  return short as unknown as Hub
}

type Streamed = { readonly partitionId: string; readonly place: LogPlace; readonly text: string }

type Kind = {
  readonly kind: string
  readonly topic: Topic
  readonly table: string
  placeOf(row: Row): Omit<Streamed, 'text'>
  textOf(row: Row): unknown
  /** The same for received events. */
  receivedTextOf(data: Data): unknown
}

const ofEvent = ({ epoch, partition, offset }: Row) => ({
  partitionId: partitionIdOf({ epoch: Number(epoch), partition: Number(partition) }),
  place: [Number(offset) + 1]
})

/** In the order of the cursor's positions. */
const KINDS: readonly Kind[] = [
  {
    kind: 'title-count',
    topic: titleCountTopic,
    table: 'event_title_count',
    placeOf: ofEvent,
    textOf: ({ title_id, online }) => `${title_id} ${online}`,
    receivedTextOf: ({ titleId, online_count }) => `${titleId} ${online_count}`
  },
  {
    kind: 'change',
    topic: leaderboardEntryTopic,
    table: 'leaderboard_feed',
    placeOf: (row) => ({
      partitionId: partitionIdOf({ epoch: Number(row.recorded_epoch), partition: Number(row.recorded_partition) }),
      place: [Number(row.recorded_offset), Number(row.epoch), Number(row.partition), Number(row.offset) + 1]
    }),
    textOf: ({ player, change }) => `${player} ${change}`,
    receivedTextOf: ({ playerName, changeType }) => `${playerName} ${changeType}`
  },
  {
    kind: 'retracted',
    topic: importRetractionTopic,
    table: 'event_import_retraction',
    placeOf: ofEvent,
    textOf: ({ retracted_import_id }) => retracted_import_id,
    receivedTextOf: ({ importId }) => importId
  }
]

/**
 * Returns the differences of a subscriber's journal, read to the end, from the tables: events missed, received twice or
 * in another order.
 */
export function streamUnlikeTables({ tables, log }: Pick<Place, 'tables' | 'log'>, subscriber: Subscriber): string[] {
  const { fingerprint } = new Channel(FILTER)
  const undone = undoneImports(log)
  const partitions = new Map<string, number>()
  /** Events that a client may lack: retried dead letters are stored at positions before its cursor. */
  const late = new Set<string>()
  /** Events that it may have although the tables lack them. */
  const gone = new Set<string>()
  for (const { topic, partition, records } of log.partitions) {
    for (const { key, offset, headers } of records) {
      partitions.set(`${topic}|${key}`, partition)
      const name = `${topic}|${partition}|${Number(offset) + 1}`
      if (headers.ce_type === LATER_TYPE) late.add(name)
      if (undone.has(`${topic}/${headers.ce_importid}`)) gone.add(name)
    }
  }
  return KINDS.flatMap(({ kind, topic, table, placeOf, textOf, receivedTextOf }, n) => {
    const received = subscriber.received.flatMap((event): Streamed[] => {
      if (event.kind !== kind) return []
      const partition = partitions.get(`${topic.name}|${topic.key(event.data as never)}`) ?? -1
      const partitionId = partitionIdOf({ epoch: 0, partition })
      const place = readCursor(fingerprint, KINDS.length, event.cursor)[n]?.get(partitionId) ?? []
      return [{ partitionId, place, text: `${partitionId} ${place} ${receivedTextOf(event.data)}` }]
    })
    const stored = tables.served(table).filter(({ is_change = true }) => is_change === true)
    const expected = stored.map((row) => {
      const { partitionId, place } = placeOf(row)
      return { partitionId, place, text: `${partitionId} ${place} ${textOf(row)}` }
    })
    const nameOf = ({ partitionId, place }: Streamed) => `${topic.name}|${partitionId.split('.')[1]}|${place}`
    const got = new Set(received.map(({ text }) => text))
    const there = new Set(expected.map(({ text }) => text))
    const newest = new Map<string, LogPlace>()
    const unordered = received.filter(({ partitionId, place }) => {
      const isBehind = comparePlaces(place, newest.get(partitionId)) > 0
      newest.set(partitionId, place)
      return !isBehind
    })
    const missed = expected.filter((each) => !got.has(each.text) && !late.has(nameOf(each)))
    const alien = received.filter((each) => !there.has(each.text) && !gone.has(nameOf(each)))
    const fault = (what: string, [first]: readonly Streamed[]) =>
      first === undefined ? [] : [`the stream of ${kind}s ${what} ${first.text}`]
    return [
      ...fault('misses', missed),
      ...fault('repeats or reorders', unordered),
      ...fault('has, unlike the tables,', alien)
    ]
  })
}
