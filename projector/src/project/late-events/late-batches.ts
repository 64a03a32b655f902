import { type LogPosition, projectionCheckpoint } from '@gamenet/schemas'
import type { Tables } from '../../store/tables.js'
import type { Projection } from '../projection.js'
import { type Range, rangeOf } from '../range.js'

/*
 * late event   one that came into its event table behind the checkpoints of projections, as a retried message does
 * late batch   late events of one topic that are taken together
 * taker        a consumer of late events besides its range: a projection by the name of its checkpoint, or another reader
 */

/** Events of a batch at most: their offsets are values of each statement over them. */
export const LATE_EVENTS_MAX = 1000
/**
 * A batch younger than this is consumed by every process once, even if another has consumed it: another process may have read
 * before it came what it stores afterwards, and its own step over the batch puts that right. Twice what a statement may take.
 */
const AGAIN_SECONDS = 1800

/** A batch that its taker has to take; what is in it is read by {@link readLateRange}. */
export type LateBatch = { readonly id: string; readonly topic: string }

/** Makes events known as late, when their rows are stored. Resolves when the batch is, as a whole. */
export async function storeLateBatch(tables: Tables, id: string, topic: string, positions: readonly LogPosition[]) {
  const tuples = positions.map(({ epoch, partition, offset }) => [epoch, partition, offset])
  await tables.insert('late_batch', ['id', 'topic', 'positions'], lineOf([id, topic, tuples]))
}

/** Records that batches are consumed. Their rows are stored before. */
export async function storeConsumed(tables: Tables, taken: readonly { readonly id: string; readonly taker: string }[]) {
  const lines = taken.map(({ id, taker }) => `${JSON.stringify([id, taker])}\n`)
  await tables.insert('late_batch_taken', ['id', 'taker'], new TextEncoder().encode(lines.join('')))
}

/** The events of a batch. */
export async function readLateRange(tables: Tables, id: string): Promise<Range> {
  const [row] = await tables.rows(
    'SELECT b.positions AS positions FROM late_batch AS b FINAL WHERE b.id = {id: String}',
    {
      id
    }
  )
  const positions = (row?.positions ?? []) as readonly (readonly [number, number, string])[]
  return rangeOf(positions.map(([epoch, partition, offset]) => ({ epoch, partition, offset: Number(offset) })))
}

/** The batches that a taker has taken, the oldest first. */
export async function lateBatchesConsumedBy(tables: Tables, taker: string): Promise<string[]> {
  const rows = await tables.rows(
    `SELECT b.id AS id FROM late_batch AS b FINAL
     WHERE b.id IN (SELECT t.id FROM late_batch_taken AS t WHERE t.taker = {taker: String})
     ORDER BY b.stored_at, b.id`,
    { taker }
  )
  return rows.map(({ id }) => String(id))
}

/** The batches of these topics that a taker has not taken, the oldest first. */
export async function lateBatchesPendingFor(
  tables: Tables,
  taker: string,
  topics: readonly string[]
): Promise<LateBatch[]> {
  const rows = await tables.rows(
    `SELECT b.id AS id, b.topic AS topic
     FROM late_batch AS b FINAL
     WHERE b.topic IN {topics: Array(String)} AND b.id NOT IN (SELECT t.id FROM late_batch_taken AS t WHERE t.taker = {taker: String})
     ORDER BY b.stored_at, b.id`,
    { topics, taker }
  )
  return rows.map(({ id, topic }) => ({ id: String(id), topic: String(topic) }))
}

type PendingBatch = LateBatch & { readonly isRecent: boolean; readonly takers: readonly string[] }

/** The late batches that the projections of this process have to take. */
export class LateBatches {
  readonly #tables: Tables
  readonly #consumedHere = new Map<string, Set<string>>()
  #pending: readonly PendingBatch[] = []

  constructor(tables: Tables) {
    this.#tables = tables
  }

  /** Looks which batches there are. */
  async refresh(projections: readonly Projection[]): Promise<void> {
    const topics = [...new Set(projections.map(({ from }) => from.name))]
    const takers = topics.map((topic) =>
      projections.filter(({ from }) => from.name === topic).map(({ name }) => projectionCheckpoint(name))
    )
    const rows = await this.#tables.rows(
      `SELECT b.id AS id, b.topic AS topic, b.stored_at > now64(3) - INTERVAL ${AGAIN_SECONDS} SECOND AS is_recent,
         t.takers AS takers
       FROM late_batch AS b FINAL
       LEFT JOIN (
         SELECT x.id AS id, groupUniqArray(toString(x.taker)) AS takers FROM late_batch_taken AS x GROUP BY x.id
       ) AS t ON t.id = b.id
       WHERE has({topics: Array(String)}, toString(b.topic)) AND (is_recent
         OR NOT hasAll(t.takers, {takers: Array(Array(String))}[indexOf({topics: Array(String)}, toString(b.topic))]))
       ORDER BY b.stored_at, b.id`,
      { topics, takers }
    )
    this.#pending = rows.map((row) => ({
      id: String(row.id),
      topic: String(row.topic),
      isRecent: Boolean(row.is_recent),
      takers: row.takers as readonly string[]
    }))
  }

  /**
   * The next batch of a projection: the oldest that it has not taken and that the projection before it has, or has just
   * made its rows of (`made`, batches by projection).
   */
  next({ name, from, after }: Projection, made: ReadonlyMap<string, string>): string | undefined {
    const isLeft = (of: string, batch: PendingBatch) =>
      this.#consumedHere.get(of)?.has(batch.id) !== true &&
      (batch.isRecent || !batch.takers.includes(projectionCheckpoint(of)))
    return this.#pending.find(
      (batch) =>
        batch.topic === from.name &&
        isLeft(name, batch) &&
        (after === undefined || made.get(after) === batch.id || !isLeft(after, batch))
    )?.id
  }

  /** Stores that projections have taken batches. */
  async store(taken: readonly { readonly projection: string; readonly id: string }[]): Promise<void> {
    if (taken.length === 0) return
    await storeConsumed(
      this.#tables,
      taken.map(({ projection, id }) => ({ id, taker: projectionCheckpoint(projection) }))
    )
    for (const { projection, id } of taken) {
      const ids = this.#consumedHere.get(projection) ?? new Set()
      this.#consumedHere.set(projection, ids.add(id))
    }
  }
}

function lineOf(values: readonly unknown[]): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(values)}\n`)
}
