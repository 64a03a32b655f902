import { achievementUnlockTopic, poll, type ReadTables } from '@gamenet/schemas'
import { type Heads, hasCaughtUp, headsOf } from '../caught-up.js'
import type { LogExtents } from '../ports/log.js'

/** The projections whose tables represent a topic's events for achievements. */
const PROJECTIONS_BY_TOPIC = {
  presence: ['presence-day', 'presence-latest', 'user-gamertag'],
  profile: ['profile'],
  rating: ['rating', 'rating-given'],
  'leaderboard-entry': ['leaderboard-entry', 'player-entry', 'player']
} as const

/** A topic whose events affect achievements of users. */
export type EvaluatedTopic = keyof typeof PROJECTIONS_BY_TOPIC
export const EVALUATED_TOPICS = Object.keys(PROJECTIONS_BY_TOPIC) as readonly EvaluatedTopic[]

const UNLOCK_PROJECTIONS = ['achievement-unlock']

const EVERY_MS = 200

/**
 * Positions of the log or of the tables: per topic the position that all its projections have reached, and that of the
 * table of unlocks.
 */
export type TopicPositions = {
  readonly byTopic: Readonly<Record<EvaluatedTopic, Heads>>
  readonly unlocks: Heads
}

/** Returns the current ends of the log. */
export async function logPositions(log: LogExtents): Promise<TopicPositions> {
  const [unlocks, ...heads] = await Promise.all(
    [achievementUnlockTopic.name, ...EVALUATED_TOPICS].map((topic) => headsOf(log, topic))
  )
  const byTopic = Object.fromEntries(EVALUATED_TOPICS.map((topic, n) => [topic, heads[n] ?? []]))
  return { byTopic: byTopic as Record<EvaluatedTopic, Heads>, unlocks: unlocks ?? [] }
}

/**
 * Waits until the tables contain everything before `held`, for at most `timeoutMs`.
 * @returns the positions of the tables; undefined after a timeout
 */
export async function waitUntilCaughtUp(
  tables: ReadTables,
  held: TopicPositions,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined }
): Promise<TopicPositions | undefined> {
  const isDone = (reached: TopicPositions) =>
    EVALUATED_TOPICS.every((topic) => hasCaughtUp(reached.byTopic[topic], held.byTopic[topic])) &&
    hasCaughtUp(reached.unlocks, held.unlocks)
  const reached = await poll(() => tablePositions(tables, options.signal), isDone, { everyMs: EVERY_MS, ...options })
  return isDone(reached) ? reached : undefined
}

/** Reads the positions of the tables in one query. */
export async function tablePositions(tables: ReadTables, signal?: AbortSignal): Promise<TopicPositions> {
  const projections = [...Object.values(PROJECTIONS_BY_TOPIC).flat(), ...UNLOCK_PROJECTIONS]
  const rows = await tables.rows(
    `SELECT c.name AS name, c.epoch AS epoch, c.partition AS partition, max(c.next) AS next
     FROM checkpoint AS c WHERE c.name IN {names: Array(String)} GROUP BY c.name, c.epoch, c.partition`,
    { names: projections.map((projection) => `project:${projection}`) },
    signal === undefined ? {} : { signal }
  )
  const found = rows.map((row) => ({
    projection: String(row.name).slice('project:'.length),
    epoch: Number(row.epoch),
    partition: Number(row.partition),
    next: Number(row.next)
  }))
  const least = (names: readonly string[]): Heads => {
    const heads = new Map<string, { epoch: number; partition: number; next: number; seen: number }>()
    for (const { projection, epoch, partition, next } of found) {
      if (!names.includes(projection)) continue
      const key = `${epoch}/${partition}`
      const before = heads.get(key) ?? { epoch, partition, next, seen: 0 }
      heads.set(key, { ...before, next: Math.min(before.next, next), seen: before.seen + 1 })
    }
    // A projection without a checkpoint has not started.
    return [...heads.values()]
      .filter(({ seen }) => seen === names.length)
      .map(({ epoch, partition, next }) => ({ epoch, partition, next }))
  }
  const byTopic = Object.fromEntries(EVALUATED_TOPICS.map((topic) => [topic, least(PROJECTIONS_BY_TOPIC[topic])]))
  return { byTopic: byTopic as Record<EvaluatedTopic, Heads>, unlocks: least(UNLOCK_PROJECTIONS) }
}
