import type { LogPosition } from '@gamenet/schemas'
import type { ColumnTypes, RowBlock } from '../rows/row-writer.js'
import { linesOf, operation } from './operation.js'

/*
 * Dead letters: the messages in `dead_letter`, the decisions about them in `dead_letter_decision`, and the view of
 * both.
 */

export type DeadLetterPosition = LogPosition & { readonly topic: string }
export type DeadLetterState = 'stored' | 'dropped'

export type DeadLetter = DeadLetterPosition & {
  readonly state: DeadLetterState
  /** Milliseconds since 1970. */
  readonly storedAtMs: number
  readonly reason: string
  readonly bytes: number
}

/** A message as it was in the log. */
export type StoredMessage = DeadLetterPosition & {
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  readonly value: Uint8Array
  readonly recordedAtMs: number
}

/** The columns of a dead letter, in the order of the loader's values. */
export const DEAD_LETTER_TYPES: ColumnTypes = {
  topic: 'LowCardinality(String)',
  epoch: 'UInt16',
  partition: 'UInt16',
  offset: 'UInt64',
  recorded_at: `DateTime64(3, 'UTC')`,
  reason: 'String',
  message_key: 'String',
  headers: 'Map(String, String)',
  value: 'String'
}

/**
 * Stores dead letters, all or none; columns of {@link DEAD_LETTER_TYPES}. They are keyed by position: storing them
 * again keeps one.
 */
export const storeDeadLetters = operation('stores dead letters', async (tables, block: RowBlock): Promise<void> => {
  await tables.insert('dead_letter', Object.keys(DEAD_LETTER_TYPES), block)
})

/** Copies the dead letters of another table that this one lacks, with the instants at which they were stored. */
export const copyDeadLetters = operation('copies dead letters', async (tables, from: string): Promise<void> => {
  await tables.execute(
    `INSERT INTO dead_letter SELECT p.* FROM ${from} AS p FINAL
     WHERE (p.topic, p.epoch, p.partition, p.offset) NOT IN (
       SELECT m.topic, m.epoch, m.partition, m.offset FROM dead_letter AS m)`
  )
})

/**
 * Stores one decision about messages of one topic, all or none. The newest of a position counts, by the engine's clock.
 */
export const storeDecisions = operation(
  'decides about dead letters',
  async (tables, decision: 'dropped' | 'retried', positions: readonly DeadLetterPosition[]): Promise<void> => {
    const columns = ['topic', 'epoch', 'partition', 'offset', 'decision']
    const rows = positions.map(({ topic, epoch, partition, offset }) => [topic, epoch, partition, offset, decision])
    await tables.insert('dead_letter_decision', columns, linesOf(rows))
  }
)

/** Counts the messages that wait for a decision; topics without one are absent. */
export const countDeadLetters = operation('counts dead letters', async (tables) => {
  const rows = await tables.rows(
    `SELECT p.topic AS topic, count() AS messages FROM dead_letter_state AS p
     WHERE p.state = 'stored' GROUP BY p.topic`
  )
  return new Map(rows.map((row) => [String(row.topic), Number(row.messages)]))
})

export type ListedState = {
  readonly state: DeadLetterState
  readonly topic?: string | undefined
  readonly limit: number
}

/** Reads the first `limit` messages in this state, by topic and position, and counts them all. */
export const readDeadLetters = operation(
  'lists dead letters',
  async (tables, { state, topic = '', limit }: ListedState) => {
    const where = `p.state = {state: String} AND ({topic: String} = '' OR p.topic = {topic: String})`
    const [counted] = await tables.rows(`SELECT count() AS total FROM dead_letter_state AS p WHERE ${where}`, {
      state,
      topic
    })
    const rows = await tables.rows(
      `${SELECT_MESSAGES} WHERE ${where} ORDER BY p.topic, p.epoch, p.partition, p.offset LIMIT {limit: UInt32}`,
      { state, topic, limit }
    )
    return { messages: rows.map(messageOf), total: Number(counted?.total) }
  }
)

/** Reads the dead letters at these positions of one topic, dropped ones included. */
export const readDeadLettersAt = operation(
  'reads dead letters',
  async (tables, topic: string, positions: readonly LogPosition[]): Promise<DeadLetter[]> => {
    const rows = await tables.rows(
      `${SELECT_MESSAGES} WHERE p.topic = {topic: String} AND ${AT_POSITIONS} AND p.state != 'retried'
       ORDER BY p.epoch, p.partition, p.offset`,
      { topic, ...columnsOf(positions) }
    )
    return rows.map(messageOf)
  }
)

/** Reads the next messages of a topic that wait for a decision, after a position, at most `limit`. */
export const readDeadLettersAfter = operation(
  'reads the next dead letters',
  async (tables, topic: string, last: LogPosition | undefined, limit: number): Promise<DeadLetter[]> => {
    const behind =
      last === undefined
        ? ''
        : 'AND (p.epoch, p.partition, p.offset) > ({epoch: UInt16}, {partition: UInt16}, {offset: UInt64})'
    const { epoch, partition, offset } = last ?? {}
    const rows = await tables.rows(
      `${SELECT_MESSAGES} WHERE p.topic = {topic: String} AND p.state = 'stored' ${behind}
       ORDER BY p.epoch, p.partition, p.offset LIMIT {limit: UInt32}`,
      { topic, limit, ...(last === undefined ? {} : { epoch, partition, offset }) }
    )
    return rows.map(messageOf)
  }
)

/** Reads the messages at these positions of one topic, with any decision; by position. */
export const readMessages = operation(
  'reads messages of dead letters',
  async (tables, topic: string, positions: readonly LogPosition[]): Promise<StoredMessage[]> => {
    const rows = await tables.rows(
      `SELECT p.epoch AS epoch, p.partition AS partition, p.offset AS offset, p.message_key AS message_key,
         p.headers AS headers, p.value AS value, toUnixTimestamp64Milli(p.recorded_at) AS recorded_at_ms
       FROM dead_letter AS p FINAL WHERE p.topic = {topic: String} AND ${AT_POSITIONS}
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
      value: Buffer.from(String(row.value), 'base64'),
      recordedAtMs: Number(row.recorded_at_ms)
    }))
  }
)

/** The waiting messages of a topic: how many, and when the newest was stored, as text of the engine. */
export type Waiting = { readonly messages: number; readonly newest: string }

/** Reads how many messages of a topic wait for a decision, and when the newest was stored. */
export const readWaiting = operation('reads dead letters of a topic', async (tables, topic: string) => {
  const [row] = await tables.rows(
    `SELECT toString(max(p.stored_at)) AS newest, count() AS messages
   FROM dead_letter_state AS p WHERE p.topic = {topic: String} AND p.state = 'stored'`,
    { topic }
  )
  return { messages: Number(row?.messages), newest: String(row?.newest) }
})

/** Drops the waiting messages of a topic that were stored by then. */
export const dropWaiting = operation(
  'drops dead letters of a topic',
  async (tables, topic: string, { newest }: Waiting): Promise<void> => {
    await tables.execute(
      `INSERT INTO dead_letter_decision (topic, epoch, partition, offset, decision)
       SELECT p.topic, p.epoch, p.partition, p.offset, 'dropped' FROM dead_letter_state AS p
       WHERE p.topic = {topic: String} AND p.state = 'stored' AND p.stored_at <= {before: DateTime64(3, 'UTC')}`,
      { topic, before: newest }
    )
  }
)

const SELECT_MESSAGES = `
  SELECT p.topic AS topic, p.epoch AS epoch, p.partition AS partition, p.offset AS offset, p.state AS state,
    toUnixTimestamp64Milli(p.stored_at) AS stored_at_ms, p.reason AS reason, p.bytes AS bytes
  FROM dead_letter_state AS p`

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
    state: row.state === 'dropped' ? 'dropped' : 'stored',
    storedAtMs: Number(row.stored_at_ms),
    reason: String(row.reason),
    bytes: Number(row.bytes)
  }
}
