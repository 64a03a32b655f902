import { randomUUID } from 'node:crypto'
import { type LogRecord, projectionCheckpoint, readSealedValue, type Topic } from '@gamenet/schemas'
import type { EventTable } from '../events/event-table.js'
import { eventTablesOf } from '../events/event-tables.js'
import { readUndone, storeAt } from '../generations/generations.js'
import { RowBuilder } from '../load/row-builder.js'
import type { SealKeys } from '../load/seal-key-cache.js'
import { projections } from '../projections/projections.js'
import type { RowBlock } from '../rows/row-writer.js'
import {
  type DeadLetter,
  type DeadLetterPosition,
  dropWaiting,
  readDeadLettersAfter,
  readDeadLettersAt,
  readMessages,
  readWaiting,
  type StoredMessage,
  storeDecisions
} from '../store/dead-letter.js'
import { storeEvents } from '../store/event-table.js'
import { eventOwner, readPointers } from '../store/generation.js'
import { LATE_EVENTS_MAX, readConsumersBehind, storeLateBatch } from '../store/late-batch.js'
import type { Store } from '../store/operation.js'

/*
 * dead letter  an unreadable message, stored as it was in the log, until an operator decides
 * dropped      decided: it is useless; it stays stored, and stays dropped if the log is read again
 * retried      decided: it was validated again, and stored or skipped because its subject was erased or its import
 *              undone
 */

export type { DeadLetter, DeadLetterPosition } from '../store/dead-letter.js'

export type DeadLetterContent = DeadLetter & Pick<StoredMessage, 'key' | 'headers' | 'value'>

/** Returns one complete message; undefined if there is none at this position, or it was retried. */
export async function readDeadLetter(
  store: Store,
  position: DeadLetterPosition
): Promise<DeadLetterContent | undefined> {
  const { topic } = position
  const [found] = await store.do(readDeadLettersAt, topic, [position])
  const [message] = await store.do(readMessages, topic, [position])
  return found === undefined || message === undefined ? undefined : { ...found, ...message }
}

/**
 * Returns the dead letters at these positions, including dropped ones; of one topic, at most {@link LATE_EVENTS_MAX}.
 */
export async function deadLettersAt(store: Store, positions: readonly DeadLetterPosition[]): Promise<DeadLetter[]> {
  const [first] = positions
  return first === undefined ? [] : await store.do(readDeadLettersAt, first.topic, positions)
}

/** Drops dead letters. */
export async function dropDeadLetters(store: Store, positions: readonly DeadLetterPosition[]): Promise<void> {
  if (positions.length > 0) await store.do(storeDecisions, 'dropped', positions)
}

/**
 * Drops all current dead letters of a topic.
 * @returns how many there were
 */
export async function dropAllDeadLetters(store: Store, topic: string): Promise<number> {
  // The statement excludes dead letters that arrive after the count.
  const waiting = await store.do(readWaiting, topic)
  await store.do(dropWaiting, topic, waiting)
  return waiting.messages
}

export type RetryNeeds = {
  readonly store: Store
  /** Topics whose schemas validate the messages. */
  readonly topics: readonly Topic[]
  /** Runs `use` with the existing seal keys of these people; none of them is deleted before it has ended. */
  readonly withSealKeys: (people: readonly number[], use: (keys: SealKeys) => Promise<void>) => Promise<void>
  /** Runs the check for undone imports together with the store; an import undo waits for it. */
  readonly inStep: <Result>(step: () => Promise<Result>) => Promise<Result>
  /** Called after each part. */
  readonly onProgress: (report: RetryReport) => void
  readonly signal: AbortSignal
}

export type RetryReport = {
  /** Messages whose event is stored. */
  readonly retried: number
  /** Messages about erased people, which cannot be decrypted, or of undone imports. They are no longer dead letters. */
  readonly passedOver: number
  /** Messages that are still unreadable; they stay dead letters. */
  readonly refused: number
  /** The first of them, with the current reason. */
  readonly refusals: readonly (DeadLetterPosition & { readonly reason: string })[]
  /** The late batches in which projections consume the stored events. */
  readonly batches: readonly string[]
}

/** Returns the projections of a topic that have not consumed all of these batches. */
export async function projectionsWithout(store: Store, topic: string, batches: readonly string[]): Promise<string[]> {
  const names = projections.filter(({ from }) => from.name === topic).map(({ name }) => name)
  const read = await storeAt('reads', store, projections)
  const behind = await read.do(readConsumersBehind, names.map(projectionCheckpoint), batches)
  return names.filter((name) => behind.has(projectionCheckpoint(name)))
}

const REFUSALS_SHOWN = 20
/** Characters of base64 that are validated together. */
const PART_CHARACTERS_MAX = 8 * 1024 * 1024

/**
 * Validates messages of one topic again, as the loader does: the given ones, or all its dead letters. Order per part:
 * rows to the event table → late batch for the projections → decision. A crash in between repeats the part, which is
 * idempotent: rows are keyed by position, and a projection may consume any event twice.
 */
export async function retryDeadLetters(
  needs: RetryNeeds,
  topic: string,
  chosen: readonly DeadLetterPosition[] | 'all'
): Promise<RetryReport> {
  const [table] = eventTablesOf(needs.topics.filter(({ name }) => name === topic))
  if (table === undefined) throw new Error(`There is no topic ${JSON.stringify(topic)}, so it has no dead letters.`)
  let report: RetryReport = { retried: 0, passedOver: 0, refused: 0, refusals: [], batches: [] }
  for await (const part of partsOf(needs, topic, chosen)) {
    needs.signal.throwIfAborted()
    report = joined(report, await retryPart(needs, table, part))
    needs.onProgress(report)
  }
  return report
}

/** Yields the positions in parts of bounded memory. */
async function* partsOf(
  { store }: RetryNeeds,
  topic: string,
  chosen: readonly DeadLetterPosition[] | 'all'
): AsyncGenerator<readonly DeadLetterPosition[]> {
  let last: DeadLetterPosition | undefined
  for (;;) {
    const next =
      chosen === 'all'
        ? await store.do(readDeadLettersAfter, topic, last, LATE_EVENTS_MAX)
        : await deadLettersAt(store, chosen)
    let part: DeadLetterPosition[] = []
    let characters = 0
    for (const message of next) {
      if (part.length > 0 && characters + message.bytes * 2 > PART_CHARACTERS_MAX) {
        yield part
        part = []
        characters = 0
      }
      part.push(message)
      characters += message.bytes * 2
    }
    if (part.length > 0) yield part
    last = next.at(-1)
    if (chosen !== 'all' || last === undefined) return
  }
}

async function retryPart(
  { store, withSealKeys, inStep }: RetryNeeds,
  table: EventTable,
  part: readonly DeadLetterPosition[]
): Promise<RetryReport> {
  const { name: topic, people } = table.topic
  const messages = await store.do(readMessages, topic, part)
  const batch = randomUUID()
  let judged: Omit<Judged, 'events'> = { stored: [], passedOver: [], refusals: [] }
  const judgeAndStore = async (keys?: SealKeys) => {
    // Within the step: a swap of event tables waits for it, so that the generation that it writes stays the one that
    // steps write.
    const pointers = await store.do(readPointers)
    const written = store.with({ names: pointers.names('writes', [eventOwner(table.topic)]) })
    const { events, ...verdict } = judge(table, messages, new Set(await readUndone(store, pointers, topic)), keys)
    judged = verdict
    if (judged.stored.length === 0) return
    await written.do(storeEvents, table, events)
    await store.do(storeLateBatch, batch, topic, judged.stored)
  }
  // The step begins first: inside the transaction that locks the keys, nothing may wait for a step that requests keys.
  await inStep(async () => {
    const subjects = new Set(messages.flatMap(({ value }) => readSealedValue(value)?.people ?? []))
    if (people === undefined) await judgeAndStore()
    else await withSealKeys([...subjects], judgeAndStore)
  })
  const { stored, passedOver, refusals } = judged
  if (stored.length + passedOver.length > 0) await store.do(storeDecisions, 'retried', [...stored, ...passedOver])
  return {
    retried: stored.length,
    passedOver: passedOver.length,
    refused: refusals.length,
    refusals: refusals.slice(0, REFUSALS_SHOWN),
    batches: stored.length === 0 ? [] : [batch]
  }
}

type Judged = {
  readonly events: RowBlock
  readonly stored: readonly DeadLetterPosition[]
  readonly passedOver: readonly DeadLetterPosition[]
  readonly refusals: readonly (DeadLetterPosition & { readonly reason: string })[]
}

function judge(
  table: EventTable,
  messages: readonly StoredMessage[],
  retracted: ReadonlySet<string>,
  keys?: SealKeys
): Judged {
  const stored: DeadLetterPosition[] = []
  const passedOver: DeadLetterPosition[] = []
  const refusals: (DeadLetterPosition & { reason: string })[] = []
  const builder = new RowBuilder(table)
  for (const { epoch, partition, ...record } of messages) {
    const position = { topic: table.topic.name, epoch, partition, offset: record.offset }
    if (retracted.has(record.headers.ce_importid ?? '')) {
      passedOver.push(position)
      continue
    }
    const { rows } = builder
    const reason = builder.add(epoch, partition, record satisfies LogRecord, (person) => keys?.get(person))
    if (reason !== undefined) refusals.push({ ...position, reason })
    else if (builder.rows > rows) stored.push(position)
    else passedOver.push(position)
  }
  return { events: builder.take().events, stored, passedOver, refusals }
}

function joined(a: RetryReport, b: RetryReport): RetryReport {
  return {
    retried: a.retried + b.retried,
    passedOver: a.passedOver + b.passedOver,
    refused: a.refused + b.refused,
    refusals: [...a.refusals, ...b.refusals].slice(0, REFUSALS_SHOWN),
    batches: [...a.batches, ...b.batches]
  }
}
