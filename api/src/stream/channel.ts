import { setImmediate as nextTurn } from 'node:timers/promises'
import { cursorOf, fingerprintOf, type PartitionId, type Place, type Position, positionText } from './cursor.js'
import { type RecordedKind, recordedKinds, type StreamEvent, type StreamFilter } from './kinds.js'

/** How events are written. */
export type Format = 'sse' | 'ndjson'

/** A connection that receives the events of a channel from now on. */
export type Receiver = {
  readonly format: Format
  write(frame: Uint8Array): void
}

/** Time of writes in one turn of the event loop: a write to 10,000 connections takes 0.2 s. */
const TURN_MS = 5

type Write = { readonly texts: Readonly<Record<Format, string>>; readonly owed: Set<Receiver> }

/** All listeners with one filter: an event is framed once for all of them. */
export class Channel {
  readonly filter: StreamFilter
  readonly fingerprint: string
  readonly kinds: readonly RecordedKind[]
  readonly hasLiveCounts: boolean
  /** Those that are at the head of every kind. */
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

  /** Frames an event that passes at a cursor, for the next flush. */
  add(event: StreamEvent, cursor: string): void {
    for (const format of FORMATS) this.#pending[format] += frameOf(format, event, cursor)
  }

  /** Writes what was framed; resolves when all have it. */
  flush(): Promise<void> {
    if (this.#pending.sse === '') return Promise.resolve()
    const written = this.send({ ...this.#pending })
    for (const format of FORMATS) this.#pending[format] = ''
    return written
  }

  /** Writes a text to everyone who is live now, as one buffer, after all texts before it; resolves when all have it. */
  send(texts: Readonly<Record<Format, string>>): Promise<void> {
    this.#writes.push({ texts, owed: new Set(this.live) })
    if (this.#writes.length === 1) this.#writing = this.#writeAll()
    return this.#writing
  }

  /** Whether a live listener does not have everything yet, so that its cursor is not the channel's. */
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

/** An event with its cursor. */
export function frameOf(format: Format, { kind, body }: StreamEvent, cursor: string): string {
  if (format === 'ndjson') return `{"cursor":"${cursor}",${body}}\n`
  return `event: ${kind}\nid: ${cursor}\ndata: {${body}}\n\n`
}

/** A cursor without an event. An `EventSource` of npm remembers an `id` only if the frame has data. */
export function cursorFrame(format: Format, cursor: string | undefined): string {
  if (format === 'ndjson') return cursor === undefined ? '\n' : `{"cursor":"${cursor}"}\n`
  return cursor === undefined ? ':\n\n' : `id: ${cursor}\ndata:\n\n`
}

/** The delay after which the client reconnects, as `EventSource` understands it. */
export function retryFrame(format: Format, ms: number): string {
  return format === 'ndjson' ? `{"retry":${ms}}\n` : `retry: ${ms}\n\n`
}

/** A state or a difference of states: without a cursor. */
export function stateFrame(format: Format, kind: string, data: string): string {
  return format === 'ndjson' ? `{"kind":"${kind}","data":${data}}\n` : `event: ${kind}\ndata: ${data}\n\n`
}

/** Where a listener stands that is not live yet. */
export class Progress {
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
}
