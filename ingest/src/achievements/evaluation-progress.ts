import type { Heads, WriteSide } from '@gamenet/schemas'
import { EVALUATED_TOPICS, type EvaluatedTopic } from './evaluated-topics.js'

/** The progress of evaluation. */
export type EvaluationProgress = {
  readonly byTopic: Readonly<Record<EvaluatedTopic, Heads>>
  /** The last day, in days since 1970, of the evaluation of users whose unlocks depend on elapsed time. */
  readonly day: number
}

/** Reads the progress of evaluation. */
export async function readEvaluationProgress(writes: WriteSide): Promise<EvaluationProgress> {
  const rows = await writes.query<{ topic: string; epoch: number; partition: number; next: string }>(
    'SELECT e.topic, e.epoch, e.partition, e.next FROM achievement_evaluation AS e'
  )
  const [last] = await writes.query<{ day: number }>('SELECT t.day FROM achievement_day AS t')
  const positionsOf = (topic: string): Heads =>
    rows
      .filter((row) => row.topic === topic)
      .map(({ epoch, partition, next }) => ({ epoch, partition, next: Number(next) }))
  const byTopic = Object.fromEntries(EVALUATED_TOPICS.map((topic) => [topic, positionsOf(topic)]))
  return { byTopic: byTopic as Record<EvaluatedTopic, Heads>, day: last?.day ?? 0 }
}

/**
 * Stores the progress of evaluation in one statement. Progress never decreases: a process that reports a position has
 * published every unlock before it.
 */
export async function storeEvaluationProgress(writes: WriteSide, { byTopic, day }: EvaluationProgress): Promise<void> {
  const rows = EVALUATED_TOPICS.flatMap((topic) => byTopic[topic].map((head) => ({ topic, ...head })))
  await writes.query(
    `WITH kept AS (
       INSERT INTO achievement_evaluation AS e (topic, epoch, partition, next)
       SELECT * FROM unnest($1::text[], $2::int[], $3::int[], $4::bigint[])
       ON CONFLICT (topic, epoch, partition) DO UPDATE SET next = greatest(e.next, excluded.next))
     UPDATE achievement_day AS t SET day = greatest(t.day, $5::int)`,
    [
      rows.map(({ topic }) => topic),
      rows.map(({ epoch }) => epoch),
      rows.map(({ partition }) => partition),
      rows.map(({ next }) => next),
      day
    ]
  )
}
