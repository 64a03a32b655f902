import { setImmediate as nextTurn } from 'node:timers/promises'
import { cursorOf, fingerprintOf, type PartitionId, type Place, type Position, positionText } from './cursor.js'
import { type RecordedKind, recordedKinds, type StreamEvent, type StreamFilter } from './kinds.js'

/** The wire format of a stream. */
export type Format = 'sse' | 'ndjson'

/** A connection that receives the new events of a channel. */
export type Receiver = {
  readonly format: Format
  write(frame: Uint8Array): void
}

/** Limit of the writes in one turn of the event loop: writing to 10,000 connections takes 0.2 s. */
const TURN_MS = 5

/** Limit of the cursors in a page: an event with a cursor of 12,000 characters costs milliseconds. */
const CURSORS_CHARACTERS_MAX = 1024 * 1024

type Write = { readonly texts: Readonly<Record<Format, string>>; readonly owed: Set<Receiver> }

/** All listeners with one filter: an event is framed once for all of them. */
export class Channel {
  readonly filter: StreamFilter
  readonly fingerprint: string
  readonly kinds: readonly RecordedKind[]
  readonly hasLiveCounts: boolean
  /** Listeners at the head of every kind. */
  readonly live = new Set<Receiver>()
  /** Connections, live or catching up. */
  connections = 0
  readonly #pending: Record<Format, string> = { sse: '', ndjson: '' }
  readonly #writes: Write[] = []
  #writing: Promise<void> = Promise.resolve()

  constructor(filter: StreamFilter) {
    this.filter = filter
    this.fingerprint = fingerprintOf(filter)
    this.kinds = recordedKinds(filter)
    this.hasLiveCounts = filter.kinds?.includes('live-counts') === true
  }

  /** Frames an event with its cursor for the next flush. */
  add(event: StreamEvent, cursor: string): void {
    for (const format of FORMATS) this.#pending[format] += frameOf(format, event, cursor)
  }

  /** Writes the framed events to all live listeners; resolves when all are written. */
  flush(): Promise<void> {
    if (this.#pending.sse === '') return Promise.resolve()
    const written = this.send({ ...this.#pending })
    for (const format of FORMATS) this.#pending[format] = ''
    return written
  }

  /** Writes a text to all live listeners as one buffer, after all earlier texts; resolves when all are written. */
  send(texts: Readonly<Record<Format, string>>): Promise<void> {
    this.#writes.push({ texts, owed: new Set(this.live) })
    if (this.#writes.length === 1) this.#writing = this.#writeAll()
    return this.#writing
  }

  /** Whether writes to a live listener are pending, so that it is behind the cursor of the channel. */
  owes(receiver: Receiver): boolean {
    return this.#writes.some(({ owed }) => owed.has(receiver))
  }

  async #writeAll(): Promise<void> {
    let endsAt = performance.now() + TURN_MS
    for (let write = this.#writes[0]; write !== undefined; write = this.#writes[0]) {
      const { texts, owed } = write
      const buffers: Partial<Record<Format, Uint8Array>> = {}
      for (const receiver of owed) {
        if (performance.now() >= endsAt) {
          await nextTurn()
          endsAt = performance.now() + TURN_MS
        }
        owed.delete(receiver)
        const { format } = receiver
        const buffer = buffers[format] ?? Buffer.from(texts[format])
        buffers[format] = buffer
        receiver.write(buffer)
      }
      this.#writes.shift()
    }
  }
}

const FORMATS = ['sse', 'ndjson'] as const

/** Returns the frame of an event with its cursor. */
export function frameOf(format: Format, { kind, body }: StreamEvent, cursor: string): string {
  if (format === 'ndjson') return `{"cursor":"${cursor}",${body}}\n`
  return `event: ${kind}\nid: ${cursor}\ndata: {${body}}\n\n`
}

/**
 * Returns a frame with a cursor alone, or a comment. The `EventSource` of npm stores an `id` only if the frame has
 * data.
 */
export function cursorFrame(format: Format, cursor: string | undefined): string {
  if (format === 'ndjson') return cursor === undefined ? '\n' : `{"cursor":"${cursor}"}\n`
  return cursor === undefined ? ':\n\n' : `id: ${cursor}\ndata:\n\n`
}

/** Returns a frame with the delay after which the client reconnects; lines of NDJSON have none. */
export const retryFrame = (format: Format, ms: number): string => (format === 'ndjson' ? '' : `retry: ${ms}\n\n`)

/** Returns the frame of a state or a difference; it has no cursor. */
export function stateFrame(format: Format, kind: string, data: string): string {
  return format === 'ndjson' ? `{"kind":"${kind}","data":${data}}\n` : `event: ${kind}\ndata: ${data}\n\n`
}

/** The position of a listener that is not live yet. */
export class Progress {
  /** Reads of pages of the tables so far. */
  reads = 0
  readonly #fingerprint: string
  readonly #positions: Map<RecordedKind, Map<PartitionId, Place>>
  readonly #texts: Map<RecordedKind, string>

  constructor({ fingerprint, kinds }: Channel, positions: readonly Position[]) {
    this.#fingerprint = fingerprint
    this.#positions = new Map(kinds.map((kind, n) => [kind, new Map(positions[n])]))
    this.#texts = new Map([...this.#positions].map(([kind, position]) => [kind, positionText(position)]))
  }

  of(kind: RecordedKind): Position {
    return this.#positions.get(kind) ?? new Map()
  }

  move(kind: RecordedKind, partitionId: PartitionId, place: Place): void {
    const position = this.#positions.get(kind)
    if (position === undefined || place.length === 0) return
    position.set(partitionId, place)
    this.#texts.set(kind, positionText(position))
  }

  get cursor(): string {
    return cursorOf(this.#fingerprint, [...this.#texts.values()])
  }

  /** Returns the size of a page of at most `limit` events: less with a long cursor, which each event has. */
  pageOf(limit: number): number {
    return Math.ceil(Math.min(limit, CURSORS_CHARACTERS_MAX / this.cursor.length))
  }
}
