import {
  achievementUnlockTopic,
  type Heads,
  type LogExtents,
  type OffsetRange,
  type ReadTables,
  rangeBetween,
  type WriteSide
} from '@gamenet/schemas'
import { furthest, hasCaughtUp, nextOf, pollTables } from '../caught-up.js'
import type { People } from '../people/people.js'
import { acquireLease, releaseLeases } from '../ports/leases.js'
import type { Log } from '../ports/log.js'
import type { ServedTables, TableAccess } from '../ports/served-tables.js'
import { publish } from '../publish/publish.js'
import {
  EVALUATED_TOPICS,
  type EvaluatedTopic,
  includes,
  isImporting,
  logPositions,
  type TopicPositions,
  tablePositions,
  usersAffectedBy,
  usersAffectedByTime
} from './evaluated-topics.js'
import { type EvaluationProgress, readEvaluationProgress, storeEvaluationProgress } from './evaluation-progress.js'
import { CHUNK_USERS_MAX, findNewUnlocks } from './new-unlocks.js'

/*
 * evaluation  evaluates the rules for all users touched by events, and publishes their unlocks
 * touched     a user with new events, or moved by other entries of a board
 * lease       the right to evaluate, for one process at a time
 */

/**
 * Events that entered the tables before the evaluated positions, such as messages that only a newer program can read.
 */
export type LateEvents = {
  /** Batches of these topics that the tables contain and evaluation has not consumed. */
  pending(
    topics: readonly string[]
  ): Promise<readonly { readonly id: string; readonly topic: string; readonly range: readonly OffsetRange[] }[]>
  consumed(ids: readonly string[]): Promise<void>
}
type LateBatches = Awaited<ReturnType<LateEvents['pending']>>

/** Maximum number of events of a topic per evaluation. A backlog takes several evaluations. */
const EVENTS_MAX = 1_000_000
/** Longer than any chunk of users takes. After a kill, no process evaluates for this long. */
const LEASE_S = 60
const DAY_MS = 86_400_000
/** Longest wait for the tables: longer than a step of the slowest projection, shorter than a lease. */
const PATIENCE_MS = 20_000
const PROVENANCE = { source: '/achievements' }
/** The name of its lease. */
const WORK = 'achievements'

export type EvaluationNeeds = TableAccess & {
  readonly writes: WriteSide
  readonly log: Log & LogExtents
  readonly people: People
  /** Default: no late events. */
  readonly late?: LateEvents | undefined
  /** Unique per process. */
  readonly holder: string
  readonly now: () => number
  readonly signal?: AbortSignal
  /** Default: {@link PATIENCE_MS}. */
  readonly patienceMs?: number
}

/**
 * Outcome of an evaluation.
 * `elsewhere`: another process evaluates. `idle`: no user was touched.
 * `waiting`: the tables lack events of the log. `behind`: the tables are older than what was evaluated, as during a
 * rebuild. `importing`: a history is being imported. Evaluating in these three states would mistake missing rows for
 * events that never happened.
 */
export type Evaluation =
  | { readonly outcome: 'elsewhere' | 'waiting' | 'behind' | 'importing' | 'idle' }
  | { readonly outcome: 'done' | 'full'; readonly users: number; readonly unlocks: number }

/**
 * Evaluates all new events once. Order: unlocks to the log → progress to PostgreSQL. After a crash anywhere the same
 * events are evaluated again; unlocks that the log already has are awaited in the tables and skipped. Two concurrent
 * evaluations may publish an unlock twice; the first one counts. Each uses the same tables to its end: a mix of old and
 * new ones could unlock an achievement permanently.
 */
export async function evaluateOnce(needs: EvaluationNeeds): Promise<Evaluation> {
  const { writes, log, holder, signal } = needs
  if (!(await acquireLease(writes, WORK, holder, LEASE_S))) return { outcome: 'elsewhere' }
  try {
    // The log's heads are read before the progress: an unlock that the progress covers is then before the heads.
    const before = await readEvaluationProgress(writes)
    const held = await logPositions(log)
    const timeoutMs = needs.patienceMs ?? PATIENCE_MS
    const found = await pollTables(needs, tablePositions, (reached) => includes(reached, held), { timeoutMs, signal })
    if (!includes(found.reached, held)) return { outcome: 'waiting' }
    // Checked last: an import with rows in the tables has announced itself by now.
    if (await isImporting(needs, found.served)) return { outcome: 'importing' }
    return await evaluate(needs, { ...found, before, late: (await needs.late?.pending(EVALUATED_TOPICS)) ?? [] })
  } finally {
    // A lease that is not released expires.
    await releaseLeases(writes, holder).catch(() => undefined)
  }
}

type Positions = {
  readonly served: ServedTables
  readonly reached: TopicPositions
  readonly before: EvaluationProgress
  readonly late: LateBatches
}

async function evaluate(needs: EvaluationNeeds, positions: Positions): Promise<Evaluation> {
  const { served, reached, before, late } = positions
  const isBehind = EVALUATED_TOPICS.some((topic) => !hasCaughtUp(reached.byTopic[topic], before.byTopic[topic]))
  if (isBehind) return { outcome: 'behind' }
  const nowMs = needs.now()
  const day = Math.floor(nowMs / DAY_MS)
  const ranges = EVALUATED_TOPICS.map((topic) => ({
    topic,
    ...rangesBetween(before.byTopic[topic], reached.byTopic[topic])
  }))
  const isNewDay = day > before.day
  if (!isNewDay && late.length === 0 && ranges.every(({ range }) => range.length === 0)) return { outcome: 'idle' }
  const lateRanges = EVALUATED_TOPICS.flatMap((topic) =>
    late.filter((batch) => batch.topic === topic).map(({ range }) => ({ topic, range }))
  )
  const users = await affectedUsers({ ...served, signal: needs.signal }, [...ranges, ...lateRanges], isNewDay)
  let unlocks = 0
  for (let first = 0; first < users.length; first += CHUNK_USERS_MAX) {
    needs.signal?.throwIfAborted()
    if (first > 0) await acquireLease(needs.writes, WORK, needs.holder, LEASE_S)
    const chunk = users.slice(first, first + CHUNK_USERS_MAX)
    const events = await findNewUnlocks(served.tables, chunk, nowMs, needs.signal)
    await publish(needs.log, achievementUnlockTopic, events, PROVENANCE, needs.people)
    unlocks += events.length
  }
  const byTopic = Object.fromEntries(
    ranges.map(({ topic, range }): [string, Heads] => [topic, range])
  ) as EvaluationProgress['byTopic']
  await storeEvaluationProgress(needs.writes, { byTopic, day })
  if (late.length > 0) await needs.late?.consumed(late.map(({ id }) => id))
  return { outcome: ranges.some(({ isComplete }) => !isComplete) ? 'full' : 'done', users: users.length, unlocks }
}

async function affectedUsers(
  { tables, signal }: { readonly tables: ReadTables; readonly signal?: AbortSignal | undefined },
  ranges: readonly { readonly topic: EvaluatedTopic; readonly range: readonly OffsetRange[] }[],
  isNewDay: boolean
): Promise<string[]> {
  const users = new Set(isNewDay ? await usersAffectedByTime(tables, signal) : [])
  for (const { topic, range } of ranges) {
    if (range.length === 0) continue
    for (const userKey of await usersAffectedBy(tables, topic, range, signal)) users.add(userKey)
  }
  return [...users].sort()
}

/** Returns a limited range between two positions, and whether it reaches the second one. */
function rangesBetween(before: Heads, heads: Heads): { range: OffsetRange[]; isComplete: boolean } {
  const range = rangeBetween((at) => nextOf(before, at), heads, EVENTS_MAX)
  return { range, isComplete: hasCaughtUp(furthest([before, range]), heads) }
}
