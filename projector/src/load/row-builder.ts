import { decodeEvent, errorMessage, type LogRecord, type SealKeyOf } from '@gamenet/schemas'
import { type EventTable, instantText, type Value } from '../events/event-table.js'
import type { Progress } from '../store/checkpoint.js'
import { LineWriter } from './line-writer.js'
import type { RowBatch } from './message.js'

/** Maximum number of rows per insert: 65,536 rows are one part, written in about 0.2 s, and 10 MB here. */
export const BATCH_ROWS_MAX = 65_536

/** Approximate maximum number of bytes per insert: a batch of huge dead letters must not fill the memory. */
const BATCH_CHARACTERS_MAX = 32 * 1024 * 1024

/** Builds the rows of one topic as lines of JSONCompactEachRow. */
export class RowBuilder {
  readonly #table: EventTable
  readonly #events = new LineWriter()
  readonly #deadLetters = new LineWriter()
  readonly #sourceJson = memoized(jsonOf)
  readonly #importIdJson = memoized(jsonOf)
  readonly #instantJson = memoized((instant) => `"${instantText(instant)}"`)
  #characters = 0
  #passedOver = 0
  #progress = new Map<number, Progress>()
  readonly #imports = new Set<string>()
  readonly #people = new Set<number>()
  #since = 0

  constructor(table: EventTable) {
    this.#table = table
  }

  /** True if records are decrypted with the seal keys of their people. */
  get isSealed(): boolean {
    return this.#table.topic.people !== undefined
  }

  /** True if the builder has neither a row nor a position. */
  get isEmpty(): boolean {
    return this.#progress.size === 0
  }

  get rows(): number {
    return this.#events.rows + this.#deadLetters.rows
  }

  get isFull(): boolean {
    return this.rows >= BATCH_ROWS_MAX || this.#characters >= BATCH_CHARACTERS_MAX
  }

  /** When the oldest record arrived, by the monotonic clock in ms; meaningless while the builder is empty. */
  get since(): number {
    return this.#since
  }

  /**
   * Adds one record as a row of its event table or as a dead letter; skips an erased one.
   * @returns the reason of the dead letter, else undefined
   */
  add(epoch: number, partition: number, record: LogRecord, sealKeyOf?: SealKeyOf): string | undefined {
    if (this.isEmpty) this.#since = performance.now()
    this.#progress.set(epoch * 2 ** 32 + partition, { epoch, partition, next: record.offset + 1 })
    const reason = this.#addEvent(epoch, partition, record, sealKeyOf)
    if (reason !== undefined) this.#addDeadLetter(epoch, partition, record, reason)
    return reason
  }

  /** Returns the rows and positions, and empties the builder. */
  take(): RowBatch {
    const batch = {
      topic: this.#table.topic.name,
      events: this.#events.take(),
      deadLetters: this.#deadLetters.take(),
      passedOver: this.#passedOver,
      imports: [...this.#imports],
      people: [...this.#people],
      progress: [...this.#progress.values()]
    }
    this.#characters = 0
    this.#passedOver = 0
    this.#imports.clear()
    this.#people.clear()
    this.#progress = new Map()
    return batch
  }

  /** Adds the row of an event. Returns why the record is unreadable; undefined if it was added or skipped. */
  #addEvent(epoch: number, partition: number, record: LogRecord, sealKeyOf: SealKeyOf | undefined): string | undefined {
    const { topic } = this.#table
    try {
      const decoded = decodeEvent(topic, record, sealKeyOf && ((person) => this.#noted(person, sealKeyOf(person))))
      if (!decoded.ok && decoded.isErased === true) {
        this.#passedOver += 1
        return undefined
      }
      if (!decoded.ok) return decoded.reason
      const { event } = decoded
      // Each value is formatted separately, because most rows share source, import and instant with the previous row.
      let line = `[${epoch},${partition},${record.offset},${this.#sourceJson(decoded.source)},`
      line += `${this.#importIdJson(decoded.importId)},${this.#instantJson(topic.instant(event))}`
      for (const value of this.#table.values(event)) line += `,${jsonOf(value)}`
      line += ']'
      this.#events.add(line)
      this.#characters += line.length
      if (decoded.importId !== '') this.#imports.add(decoded.importId)
      return undefined
    } catch (error) {
      // A lift or a row function that fails on a valid value is a defect, but must not stop loading.
      return errorMessage(error)
    }
  }

  #noted(person: number, key: Uint8Array | undefined): Uint8Array | undefined {
    if (key !== undefined) this.#people.add(person)
    return key
  }

  #addDeadLetter(epoch: number, partition: number, record: LogRecord, reason: string): void {
    const bytes = typeof record.value === 'string' ? Buffer.from(record.value) : (record.value ?? new Uint8Array())
    const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
    const { name } = this.#table.topic
    const values = [name, epoch, partition, record.offset, reason, record.key ?? '', record.headers, value]
    const line = `[${values.map(jsonOf).join(',')}]`
    this.#deadLetters.add(line)
    this.#characters += line.length
  }
}

/**
 * Formats a value of a line. JSON can spell an unpaired surrogate (`\ud83d`), which is invalid text: ClickHouse would
 * refuse the whole insert, forever. It becomes U+FFFD, as in any conversion to UTF-8.
 */
function jsonOf(value: Value | Readonly<Record<string, string>>): string {
  if (Number.isInteger(value)) return String(value)
  const json = JSON.stringify(value)
  if (!json.includes('\\ud')) return json
  return /\\ud[89a-f]/.test(json) ? JSON.stringify(value, wellFormed) : json
}

function wellFormed(_key: string, value: unknown): unknown {
  if (typeof value === 'string') return Buffer.from(value).toString()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [Buffer.from(key).toString(), each]))
}

/** Caches the result for the last text. */
function memoized(work: (text: string) => string): (text: string) => string {
  let lastText = ''
  let lastResult = work('')
  return (text) => {
    if (text !== lastText) {
      lastResult = work(text)
      lastText = text
    }
    return lastResult
  }
}
