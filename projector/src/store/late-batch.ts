import type { LogPosition } from '@gamenet/schemas'
import { linesOf, operation, type TableNames } from './operation.js'

/*
 * late event   an event that was stored behind the checkpoints of projections, such as a retried message
 * late batch   late events of one topic that are consumed together
 * consumer     a reader of late events: a projection by the name of its checkpoint, or another reader
 */

/** Maximum number of events in a batch: each statement contains their offsets. */
export const LATE_EVENTS_MAX = 1000
/**
 * Every process consumes a batch younger than this once, even if another has consumed it: a process may have read rows
 * before the batch and store them after it, and its own step over the batch corrects them. Twice the longest statement,
 * in seconds.
 */
export const AGAIN_SECONDS = 1800

/** A batch that a consumer has not consumed; {@link readLatePositions} reads its positions. */
export type LateBatch = { readonly id: string; readonly topic: string }

/** A batch as the projections of all processes see it. */
export type KnownBatch = LateBatch & { readonly isRecent: boolean; readonly consumers: readonly string[] }

/** Stores a batch, all or nothing; call it when the rows of its events are stored. */
export const storeLateBatch = operation(
  'stores a late batch',
  async (tables, id: string, topic: string, positions: readonly LogPosition[]): Promise<void> => {
    const tuples = positions.map(({ epoch, partition, offset }) => [epoch, partition, offset])
    await tables.insert('late_batch', ['id', 'topic', 'positions'], linesOf([[id, topic, tuples]]))
  }
)

/** Records that batches are consumed, all or none. Their rows are stored before. */
export const storeConsumed = operation(
  'stores that late batches are consumed',
  async (tables, taken: readonly { readonly id: string; readonly consumer: string }[]): Promise<void> => {
    const rows = taken.map(({ id, consumer }) => [id, tables.target(consumer)])
    await tables.insert('late_batch_taken', ['id', 'taker'], linesOf(rows))
  }
)

/** Copies the records of consumed batches from the generations that steps write to the generations of this view. */
export const copyConsumed = operation(
  'copies which late batches are consumed',
  async (tables, from: TableNames, consumers: readonly string[]): Promise<void> => {
    await tables.execute(
      `INSERT INTO late_batch_taken (id, taker)
       SELECT t.id, transform(toString(t.taker), {from: Array(String)}, {to: Array(String)}, '')
       FROM late_batch_taken AS t WHERE has({from: Array(String)}, toString(t.taker))`,
      {
        from: consumers.map((consumer) => from.get(consumer) ?? consumer),
        to: consumers.map((consumer) => tables.target(consumer))
      }
    )
  }
)

/** Reads all consumers, by the engine's names. */
export const readBatchConsumers = operation('reads consumers of late batches', async (tables): Promise<string[]> => {
  const rows = await tables.rows('SELECT DISTINCT t.taker AS taker FROM late_batch_taken AS t ORDER BY taker')
  return rows.map(({ taker }) => String(taker))
})

/** Deletes the records of consumers that are no longer in use, as `discardCheckpoints` does. */
export const discardBatchConsumers = operation(
  'discards consumers of late batches',
  async (tables, consumers: readonly string[]): Promise<void> => {
    const listed = consumers.map((consumer) => `'${consumer}'`).join(', ')
    await tables.execute(`ALTER TABLE late_batch_taken DELETE WHERE taker IN (${listed})`)
  }
)

/** Reads the positions of a batch; none if it does not exist. */
export const readLatePositions = operation('reads a late batch', async (tables, id: string): Promise<LogPosition[]> => {
  const [row] = await tables.rows(
    'SELECT b.positions AS positions FROM late_batch AS b FINAL WHERE b.id = {id: String}',
    { id }
  )
  const positions = (row?.positions ?? []) as readonly (readonly [number, number, string])[]
  return positions.map(([epoch, partition, offset]) => ({ epoch, partition, offset: Number(offset) }))
})

/** Reads the batches that a consumer has consumed, the oldest first. */
export const readConsumed = operation('reads late batches that are consumed', async (tables, consumer: string) => {
  const rows = await tables.rows(
    `SELECT b.id AS id FROM late_batch AS b FINAL
     WHERE b.id IN (SELECT t.id FROM late_batch_taken AS t WHERE t.taker = {consumer: String})
     ORDER BY b.stored_at, b.id`,
    { consumer: tables.source(consumer) }
  )
  return rows.map(({ id }) => String(id))
})

/** Reads the batches of these topics that a consumer has not consumed, the oldest first. */
export const readPending = operation(
  'reads late batches that are not consumed',
  async (tables, consumer: string, topics: readonly string[]): Promise<LateBatch[]> => {
    const rows = await tables.rows(
      `SELECT b.id AS id, b.topic AS topic
       FROM late_batch AS b FINAL
       WHERE b.topic IN {topics: Array(String)}
         AND b.id NOT IN (SELECT t.id FROM late_batch_taken AS t WHERE t.taker = {consumer: String})
       ORDER BY b.stored_at, b.id`,
      { topics, consumer: tables.source(consumer) }
    )
    return rows.map(({ id, topic }) => ({ id: String(id), topic: String(topic) }))
  }
)

/**
 * Reads the batches that some consumer of their topic has not consumed, and those younger than {@link AGAIN_SECONDS} by
 * the engine's clock; the oldest first.
 */
export const readKnownBatches = operation(
  'reads late batches',
  async (tables, consumersByTopic: ReadonlyMap<string, readonly string[]>): Promise<KnownBatch[]> => {
    const rows = await tables.rows(
      `SELECT b.id AS id, b.topic AS topic, b.stored_at > now64(3) - INTERVAL ${AGAIN_SECONDS} SECOND AS is_recent,
         t.consumers AS consumers
       FROM late_batch AS b FINAL
       LEFT JOIN (
         SELECT x.id AS id, groupUniqArray(toString(x.taker)) AS consumers FROM late_batch_taken AS x GROUP BY x.id
       ) AS t ON t.id = b.id
       WHERE has({topics: Array(String)}, toString(b.topic)) AND (is_recent
         OR NOT hasAll(t.consumers, {consumers: Array(Array(String))}[indexOf({topics: Array(String)},
         toString(b.topic))]))
       ORDER BY b.stored_at, b.id`,
      {
        topics: [...consumersByTopic.keys()],
        consumers: [...consumersByTopic.values()].map((consumers) =>
          consumers.map((consumer) => tables.source(consumer))
        )
      }
    )
    return rows.map((row) => ({
      id: String(row.id),
      topic: String(row.topic),
      isRecent: Boolean(row.is_recent),
      consumers: (row.consumers as readonly string[]).flatMap((consumer) => tables.nameOf(consumer) ?? [])
    }))
  }
)

/** Reads the consumers among these that have not consumed all of these batches. */
export const readConsumersBehind = operation(
  'reads consumers that are behind',
  async (tables, consumers: readonly string[], ids: readonly string[]): Promise<ReadonlySet<string>> => {
    const rows = await tables.rows(
      `SELECT n.taker AS taker
       FROM (SELECT arrayJoin({consumers: Array(String)}) AS taker) AS n
       LEFT JOIN (
         SELECT toString(t.taker) AS taker, uniqExact(t.id) AS batches FROM late_batch_taken AS t
         WHERE t.id IN {ids: Array(String)} GROUP BY t.taker
       ) AS s ON s.taker = n.taker
       WHERE s.batches < {batches: UInt32}`,
      { consumers: consumers.map((consumer) => tables.source(consumer)), ids, batches: ids.length }
    )
    return new Set(rows.flatMap(({ taker }) => tables.nameOf(String(taker)) ?? []))
  }
)
