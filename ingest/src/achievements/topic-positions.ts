import { achievementUnlockTopic, type Heads, headsOf, type LogExtents, projectionCheckpoint } from '@gamenet/schemas'
import { hasCaughtUp } from '../caught-up.js'
import type { ServedTables } from '../ports/served-tables.js'

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

/** Returns whether `reached` is at or beyond `held` in all topics. */
export function includes(reached: TopicPositions, held: TopicPositions): boolean {
  return (
    EVALUATED_TOPICS.every((topic) => hasCaughtUp(reached.byTopic[topic], held.byTopic[topic])) &&
    hasCaughtUp(reached.unlocks, held.unlocks)
  )
}

/** Reads the positions of the tables in one query. */
export async function tablePositions({ positions }: ServedTables): Promise<TopicPositions> {
  const projections = [...Object.values(PROJECTIONS_BY_TOPIC).flat(), ...UNLOCK_PROJECTIONS]
  const found = await positions(projections.map(projectionCheckpoint))
  const least = (projections: readonly string[]): Heads => {
    const names = projections.map(projectionCheckpoint)
    const heads = new Map<string, { epoch: number; partition: number; next: number; seen: number }>()
    for (const { name, epoch, partition, next } of found) {
      if (!names.includes(name)) continue
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
