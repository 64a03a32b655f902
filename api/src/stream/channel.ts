import { cursorOf, fingerprintOf, type Lane, type Place, type Position, positionText } from './cursor.js'
import { type RecordedKind, recordedKinds, type StreamEvent, type StreamFilter } from './kinds.js'

/** How events are written. */
export type Format = 'sse' | 'ndjson'

/** A connection that receives the events of a channel from now on. */
export type Receiver = {
  readonly format: Format
  write(frame: Uint8Array): void
}

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

  constructor(filter: StreamFilter) {
    this.filter = filter
    this.fingerprint = fingerprintOf(filter)
    this.kinds = recordedKinds(filter)
    this.hasLiveCounts = filter.kinds.includes('live-counts')
  }

  /** Frames an event that passes at a cursor, for the next flush. */
  add(event: StreamEvent, cursor: string): void {
    for (const format of FORMATS) this.#pending[format] += frameOf(format, event, cursor)
  }

  /** Writes what was framed. */
  flush(): void {
    if (this.#pending.sse === '') return
    this.send(this.#pending)
    for (const format of FORMATS) this.#pending[format] = ''
  }

  /** Writes a text to every live listener, as one buffer. */
  send(texts: Readonly<Record<Format, string>>): void {
    const buffers: Partial<Record<Format, Uint8Array>> = {}
    for (const receiver of this.live) {
      const { format } = receiver
      const buffer = buffers[format] ?? Buffer.from(texts[format])
      buffers[format] = buffer
      receiver.write(buffer)
    }
  }
}

const FORMATS = ['sse', 'ndjson'] as const

/** An event with its cursor. */
export function frameOf(format: Format, { kind, body }: StreamEvent, cursor: string): string {
  if (format === 'ndjson') return `{"cursor":"${cursor}",${body}}\n`
  return `event: ${kind}\nid: ${cursor}\ndata: {${body}}\n\n`
}

/** A cursor without an event: an `EventSource` remembers it and fires nothing. */
export function cursorFrame(format: Format, cursor: string | undefined): string {
  if (format === 'ndjson') return cursor === undefined ? '\n' : `{"cursor":"${cursor}"}\n`
  return cursor === undefined ? ':\n\n' : `id: ${cursor}\n\n`
}

/** A state or a difference of states: without a cursor. */
export function stateFrame(format: Format, kind: string, data: string): string {
  return format === 'ndjson' ? `{"kind":"${kind}","data":${data}}\n` : `event: ${kind}\ndata: ${data}\n\n`
}

/** Where a listener stands that is not live yet. */
export class Progress {
  readonly #fingerprint: string
  readonly #positions: Map<RecordedKind, Map<Lane, Place>>
  readonly #texts: Map<RecordedKind, string>

  constructor({ fingerprint, kinds }: Channel, positions: readonly Position[]) {
    this.#fingerprint = fingerprint
    this.#positions = new Map(kinds.map((kind, n) => [kind, new Map(positions[n])]))
    this.#texts = new Map([...this.#positions].map(([kind, position]) => [kind, positionText(position)]))
  }

  of(kind: RecordedKind): Position {
    return this.#positions.get(kind) ?? new Map()
  }

  move(kind: RecordedKind, lane: Lane, place: Place): void {
    const position = this.#positions.get(kind)
    if (position === undefined || place.length === 0) return
    position.set(lane, place)
    this.#texts.set(kind, positionText(position))
  }

  get cursor(): string {
    return cursorOf(this.#fingerprint, [...this.#texts.values()])
  }
}
