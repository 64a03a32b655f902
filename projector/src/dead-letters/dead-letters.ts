import { randomUUID } from 'node:crypto'
import { type LogPosition, type LogRecord, projectionCheckpoint, readSealedValue, type Topic } from '@gamenet/schemas'
import type { EventTable } from '../events/event-table.js'
import { eventTablesOf } from '../events/event-tables.js'
import { RowBuilder } from '../load/row-builder.js'
import type { SealKeys } from '../load/seal-key-cache.js'
import { LATE_EVENTS_MAX, storeLateBatch } from '../project/late-events/late-batches.js'
import { projections } from '../projections/projections.js'
import { requireNoSwap } from '../rebuild/recovery.js'
import { retractedImports } from '../store/retracted-imports.js'
import type { Tables } from '../store/tables.js'

/*
 * dead letter  a message that could not be read, kept as it stood in the log, until something is decided about it
 * dropped      decided: it is of no use; it is kept, and stays dropped when the log is read again
 * retried    decided: it was validated again and stored, or passed over, being of somebody or something that was taken away
 */

export type DeadLetterPosition = LogPosition & { readonly topic: string }
export type DeadLetterState = 'parked' | 'dropped'

export type DeadLetter = DeadLetterPosition & {
  readonly state: DeadLetterState
  /** Milliseconds since 1970. */
  readonly storedAtMs: number
  readonly reason: string
  readonly bytes: number
}

export type DeadLetterContent = DeadLetter & {
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  readonly value: Uint8Array
}

/** How many messages of each topic wait for a decision; topics without one are absent. */
export async function deadLettersByTopic(tables: Tables): Promise<Map<string, number>> {
  const rows = await tables.rows(
    `SELECT p.topic AS topic, count() AS messages FROM parked_state AS p WHERE p.state = 'parked' GROUP BY p.topic`
  )
  return new Map(rows.map((row) => [String(row.topic), Number(row.messages)]))
}

/** The first `limit` messages in this state, by topic and position, and how many there are. */
export async function listDeadLetters(
  tables: Tables,
  {
    state,
    topic,
    limit
  }: { readonly state: DeadLetterState; readonly topic?: string | undefined; readonly limit: number }
): Promise<{ readonly messages: readonly DeadLetter[]; readonly total: number }> {
  const where = `p.state = {state: String} AND ({topic: String} = '' OR p.topic = {topic: String})`
  const parameters = { state, topic: topic ?? '' }
  const [counted] = await tables.rows(`SELECT count() AS total FROM parked_state AS p WHERE ${where}`, parameters)
  const rows = await tables.rows(
    `${SELECT_MESSAGES} WHERE ${where} ORDER BY p.topic, p.epoch, p.partition, p.offset LIMIT {limit: UInt32}`,
    { ...parameters, limit }
  )
  return { messages: rows.map(messageOf), total: Number(counted?.total) }
}

/** One message whole; undefined when there is none at this position, or it was retried. */
export async function readDeadLetter(
  tables: Tables,
  position: DeadLetterPosition
): Promise<DeadLetterContent | undefined> {
  const [found] = await deadLettersAt(tables, [position])
  const [content] = await readContents(tables, position.topic, [position])
  return found === undefined || content === undefined ? undefined : { ...found, ...content }
}

/** The dead letters at these positions, dropped ones included; of one topic, at most {@link LATE_EVENTS_MAX}. */
export async function deadLettersAt(tables: Tables, positions: readonly DeadLetterPosition[]): Promise<DeadLetter[]> {
  const [first] = positions
  if (first === undefined) return []
  const rows = await tables.rows(
    `${SELECT_MESSAGES} WHERE p.topic = {topic: String} AND ${AT_POSITIONS} AND p.state != 'retried'
     ORDER BY p.epoch, p.partition, p.offset`,
    { topic: first.topic, ...columnsOf(positions) }
  )
  return rows.map(messageOf)
}

/** Drops dead letters. */
export async function dropDeadLetters(tables: Tables, positions: readonly DeadLetterPosition[]): Promise<void> {
  await decide(tables, 'dropped', positions)
}

/**
 * Drops all dead letters that a topic has now.
 * @returns how many there were
 */
export async function dropAllDeadLetters(tables: Tables, topic: string): Promise<number> {
  const condition = `p.topic = {topic: String} AND p.state = 'parked' AND p.parked_at <= {before: DateTime64(3, 'UTC')}`
  // A dead letter that arrives after the question is not dropped by the statement behind it.
  const [row] = await tables.rows(
    `SELECT toString(max(p.parked_at)) AS newest, count() AS messages
     FROM parked_state AS p WHERE p.topic = {topic: String} AND p.state = 'parked'`,
    { topic }
  )
  await tables.execute(
    `INSERT INTO parked_decision (topic, epoch, partition, offset, decision)
     SELECT p.topic, p.epoch, p.partition, p.offset, 'dropped' FROM parked_state AS p WHERE ${condition}`,
    { topic, before: row?.newest }
  )
  return Number(row?.messages)
}

export type RetryNeeds = {
  readonly tables: Tables
  /** By whose schemas messages are judged. */
  readonly topics: readonly Topic[]
  /** Runs `use` with the seal keys that there are of these people; none of them is thrown away before it has ended. */
  readonly withSealKeys: (people: readonly number[], use: (keys: SealKeys) => Promise<void>) => Promise<void>
  /** Runs what looks which imports were taken back, and then stores: an import undo waits for it. */
  readonly inStep: <Result>(step: () => Promise<Result>) => Promise<Result>
  /** Called after each part. */
  readonly onProgress: (report: RetryReport) => void
  readonly signal: AbortSignal
}

export type RetryReport = {
  /** Messages whose event is stored. */
  readonly retried: number
  /** About people who were forgotten, so that nobody can open them, or of imports that were taken back. They are dead letters no more. */
  readonly passedOver: number
  /** Messages that could still not be read, and stay as they were. */
  readonly refused: number
  /** The first of them, with the reason of now. */
  readonly refusals: readonly (DeadLetterPosition & { readonly reason: string })[]
  /** The late batches in which projections take what was stored. */
  readonly batches: readonly string[]
}

/** The projections of a topic that have not taken all of these batches. */
export async function projectionsWithout(tables: Tables, topic: string, batches: readonly string[]): Promise<string[]> {
  const names = projections.filter(({ from }) => from.name === topic).map(({ name }) => name)
  const rows = await tables.rows(
    `SELECT n.taker AS taker
     FROM (SELECT arrayJoin({takers: Array(String)}) AS taker) AS n
     LEFT JOIN (
       SELECT toString(t.taker) AS taker, uniqExact(t.id) AS batches FROM late_batch_taken AS t
       WHERE t.id IN {ids: Array(String)} GROUP BY t.taker
     ) AS s ON s.taker = n.taker
     WHERE s.batches < {batches: UInt32}`,
    { takers: names.map(projectionCheckpoint), ids: batches, batches: batches.length }
  )
  const missing = new Set(rows.map(({ taker }) => String(taker)))
  return names.filter((name) => missing.has(projectionCheckpoint(name)))
}

const REFUSALS_SHOWN = 20
/** Characters of base64 that are judged together. */
const PART_CHARACTERS_MAX = 8 * 1024 * 1024

/**
 * Validates messages of one topic again, as the loader does: these ones, or all its dead letters. Order per part: rows into the
 * event table → the late batch by which projections take them → the decision. A crash in between repeats the part, which
 * reads as once: rows are keyed by position, and a projection may take any event twice.
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

/** Positions in parts that may be held in memory. */
async function* partsOf(
  { tables }: RetryNeeds,
  topic: string,
  chosen: readonly DeadLetterPosition[] | 'all'
): AsyncGenerator<readonly DeadLetterPosition[]> {
  let last: DeadLetterPosition | undefined
  for (;;) {
    const next = chosen === 'all' ? await deadLettersAfter(tables, topic, last) : await deadLettersAt(tables, chosen)
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

async function deadLettersAfter(
  tables: Tables,
  topic: string,
  last: DeadLetterPosition | undefined
): Promise<readonly DeadLetter[]> {
  const behind =
    last === undefined
      ? ''
      : 'AND (p.epoch, p.partition, p.offset) > ({epoch: UInt16}, {partition: UInt16}, {offset: UInt64})'
  const rows = await tables.rows(
    `${SELECT_MESSAGES} WHERE p.topic = {topic: String} AND p.state = 'parked' ${behind}
     ORDER BY p.epoch, p.partition, p.offset LIMIT {limit: UInt32}`,
    {
      topic,
      limit: LATE_EVENTS_MAX,
      ...(last === undefined ? {} : { epoch: last.epoch, partition: last.partition, offset: last.offset })
    }
  )
  return rows.map(messageOf)
}

async function retryPart(
  { tables, withSealKeys, inStep }: RetryNeeds,
  table: EventTable,
  part: readonly DeadLetterPosition[]
): Promise<RetryReport> {
  const { name: topic, people } = table.topic
  const contents = await readContents(tables, topic, part)
  const batch = randomUUID()
  let judged: Judged = { rows: [], stored: [], passedOver: [], refusals: [] }
  const store = async (keys?: SealKeys) => {
    judged = judge(table, contents, new Set(await retractedImports(tables, table.topic)), keys)
    if (judged.stored.length === 0) return
    await tables.insert(table.table, table.columns, Buffer.concat(judged.rows))
    await storeLateBatch(tables, batch, topic, judged.stored)
  }
  // The keys are held in a transaction, in which nobody may wait for a step that asks for keys itself.
  await inStep(async () => {
    await requireNoSwap(tables)
    if (people === undefined) await store()
    else await withSealKeys([...new Set(contents.flatMap(({ value }) => readSealedValue(value)?.people ?? []))], store)
  })
  const { stored, passedOver, refusals } = judged
  await decide(tables, 'retried', [...stored, ...passedOver])
  return {
    retried: stored.length,
    passedOver: passedOver.length,
    refused: refusals.length,
    refusals: refusals.slice(0, REFUSALS_SHOWN),
    batches: stored.length === 0 ? [] : [batch]
  }
}

type Content = DeadLetterPosition & Pick<DeadLetterContent, 'key' | 'headers' | 'value'>

type Judged = {
  readonly rows: readonly Uint8Array[]
  readonly stored: readonly DeadLetterPosition[]
  readonly passedOver: readonly DeadLetterPosition[]
  readonly refusals: readonly (DeadLetterPosition & { readonly reason: string })[]
}

function judge(
  table: EventTable,
  contents: readonly Content[],
  retracted: ReadonlySet<string>,
  keys?: SealKeys
): Judged {
  const rows: Uint8Array[] = []
  const stored: DeadLetterPosition[] = []
  const passedOver: DeadLetterPosition[] = []
  const refusals: (DeadLetterPosition & { reason: string })[] = []
  for (const { epoch, partition, ...record } of contents) {
    const position = { topic: table.topic.name, epoch, partition, offset: record.offset }
    if (retracted.has(record.headers.ce_importid ?? '')) {
      passedOver.push(position)
      continue
    }
    const builder = new RowBuilder(table)
    const reason = builder.add(epoch, partition, record satisfies LogRecord, (person) => keys?.get(person))
    const { events } = builder.take()
    if (events.rows > 0) {
      rows.push(events.body)
      stored.push(position)
    } else if (reason !== undefined) refusals.push({ ...position, reason })
    else passedOver.push(position)
  }
  return { rows, stored, passedOver, refusals }
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

async function decide(tables: Tables, decision: 'dropped' | 'retried', positions: readonly DeadLetterPosition[]) {
  const lines = positions.map(({ topic, epoch, partition, offset }) => {
    return `${JSON.stringify([topic, epoch, partition, offset, decision])}\n`
  })
  const columns = ['topic', 'epoch', 'partition', 'offset', 'decision']
  if (lines.length > 0) await tables.insert('parked_decision', columns, new TextEncoder().encode(lines.join('')))
}

async function readContents(
  tables: Tables,
  topic: string,
  positions: readonly DeadLetterPosition[]
): Promise<readonly Content[]> {
  const rows = await tables.rows(
    `SELECT p.epoch AS epoch, p.partition AS partition, p.offset AS offset, p.message_key AS message_key,
       p.headers AS headers, p.value AS value
     FROM parked_message AS p FINAL WHERE p.topic = {topic: String} AND ${AT_POSITIONS}
     ORDER BY p.epoch, p.partition, p.offset`,
    { topic, ...columnsOf(positions) }
  )
  return rows.map((row) => ({
    topic,
    epoch: Number(row.epoch),
    partition: Number(row.partition),
    offset: Number(row.offset),
    key: String(row.message_key),
    headers: row.headers as Readonly<Record<string, string>>,
    value: Buffer.from(String(row.value), 'base64')
  }))
}

const SELECT_MESSAGES = `
  SELECT p.topic AS topic, p.epoch AS epoch, p.partition AS partition, p.offset AS offset, p.state AS state,
    toUnixTimestamp64Milli(p.parked_at) AS parked_at_ms, p.reason AS reason, p.bytes AS bytes
  FROM parked_state AS p`

const AT_POSITIONS = `(p.epoch, p.partition, p.offset) IN
  arrayZip({epochs: Array(UInt16)}, {partitions: Array(UInt16)}, {offsets: Array(UInt64)})`

function columnsOf(positions: readonly LogPosition[]) {
  return {
    epochs: positions.map(({ epoch }) => epoch),
    partitions: positions.map(({ partition }) => partition),
    offsets: positions.map(({ offset }) => offset)
  }
}

function messageOf(row: Record<string, unknown>): DeadLetter {
  return {
    topic: String(row.topic),
    epoch: Number(row.epoch),
    partition: Number(row.partition),
    offset: Number(row.offset),
    state: row.state === 'dropped' ? 'dropped' : 'parked',
    storedAtMs: Number(row.parked_at_ms),
    reason: String(row.reason),
    bytes: Number(row.bytes)
  }
}
