import { decodeEvent, errorMessage, type LogRecord, recordedAtMs, type SealKeyOf } from '@gamenet/schemas'
import type { EventTable } from '../events/event-table.js'
import { RowWriter } from '../rows/row-writer.js'
import type { Progress } from '../store/checkpoint.js'
import { DEAD_LETTER_TYPES } from '../store/dead-letter.js'
import type { RowBatch } from './message.js'

/** Maximum number of rows per insert: 65,536 rows are one part, written in about 0.2 s, and 10 MB here. */
export const BATCH_ROWS_MAX = 65_536

/** Maximum size of the messages of an insert: a batch of huge dead letters must not fill the memory. */
const BATCH_BYTES_MAX = 32 * 1024 * 1024

/** Builds the rows of one topic. */
export class RowBuilder {
  readonly #table: EventTable
  readonly #events: RowWriter
  readonly #deadLetters = new RowWriter(DEAD_LETTER_TYPES)
  #lastInstant = ''
  #lastMs = 0
  #bytes = 0
  #passedOver = 0
  #progress = new Map<number, Progress>()
  readonly #imports = new Set<string>()
  readonly #people = new Set<number>()
  #since = 0

  constructor(table: EventTable) {
    this.#table = table
    this.#events = new RowWriter(table.types)
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
    return this.rows >= BATCH_ROWS_MAX || this.#bytes >= BATCH_BYTES_MAX
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
    this.#bytes += record.value?.length ?? 0
    this.reach(epoch, partition, record.offset + 1)
    const reason = this.#addEvent(epoch, partition, record, sealKeyOf)
    if (reason !== undefined) this.#addDeadLetter(epoch, partition, record, reason)
    return reason
  }

  /** Advances to an offset without a record. */
  reach(epoch: number, partition: number, next: number): void {
    if (this.isEmpty) this.#since = performance.now()
    this.#progress.set(epoch * 2 ** 32 + partition, { epoch, partition, next })
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
    this.#bytes = 0
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
      const { source, importId } = decoded
      const instants = [this.#msOf(topic.instant(event)), recordedAtMs(record) ?? 0]
      const place = [epoch, partition, record.offset, source, importId, ...instants]
      this.#events.add([...place, ...this.#table.values(event)])
      if (importId !== '') this.#imports.add(importId)
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
    const place = [name, epoch, partition, record.offset, recordedAtMs(record) ?? 0]
    this.#deadLetters.add([...place, reason, record.key ?? '', record.headers, value])
  }

  /** Most records have the instant of the one before. */
  #msOf(instant: string): number {
    if (instant !== this.#lastInstant) {
      this.#lastMs = Date.parse(instant)
      this.#lastInstant = instant
    }
    return this.#lastMs
  }
}
