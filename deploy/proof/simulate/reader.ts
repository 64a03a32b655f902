import { type AnswerContext, ConsistentReads, DataVersions, type Dependency } from '@gamenet/api'
import { type ChangeRow, type LanePlace, readFeed } from '@gamenet/api/internals'
import { nameKey } from '@gamenet/schemas'
import { ALL_CHANGES } from './operations/queries.js'
import { type Place, TITLE_IDS, USERS } from './place.js'
import { HOUR_MS } from './plain-folds.js'
import type { Process, Running } from './process.js'
import type { SwapSide } from './rebuilding.js'
import type { Row } from './replacing-table.js'
import { lookUp, queriesIn, type Tables } from './store.js'
import { BEGIN_MS } from './virtual-time.js'

/** A question: what its answer reads, and how it is found. */
export type Question = { readonly name: string; readonly dependency: Dependency; find(tables: Tables): readonly Row[] }

const READ_EVERY_MS = 1500
const FEED_EVERY_MS = 4000

/** A client's place in the feed of changes; the client stores it, so any process can answer. */
export class Follower {
  readonly seen: ChangeRow[] = []
  places: readonly LanePlace[] = []
}

/** What a process knows of answers. */
export type Reading = {
  readonly versions: DataVersions
  readonly consistent: ConsistentReads
  readonly kept: Map<string, { version: number; answer: string }>
  /** Follows the feed of changes to its end. */
  follow(): Promise<void>
}

/** Answers questions, and keeps an answer for as long as the version of what it reads stays. */
export function runReader(
  place: Place,
  process: Process,
  follower: Follower,
  swapsOf: (versions: DataVersions) => SwapSide
): Running & { readonly reading: Reading; readonly swaps: SwapSide } {
  const { world, bug, conditions } = place
  const { time, chance } = world
  const { life } = process
  const tables = bug.readerTables(queriesIn(world, place.tables))
  const versions = new DataVersions({ tables })
  const swaps = swapsOf(versions)
  const consistent = new ConsistentReads(swaps.count)
  let turned: Promise<unknown> = Promise.resolve()
  /** One page after the other: a cursor is used once. */
  const turnPage = (): Promise<number> => {
    const turn = turned.then(readPage)
    turned = turn.catch(() => undefined)
    return turn
  }
  const readPage = async (): Promise<number> => {
    const context = { tables, signal: new AbortController().signal } as unknown as AnswerContext
    const query = { filter: ALL_CHANGES, limit: chance.between(1, 12), places: follower.places }
    const page = await consistent.read(() => readFeed(query, context))
    follower.seen.push(...page.rows)
    follower.places = page.next
    return page.rows.length
  }
  const follow = async () => {
    while ((await turnPage()) > 0);
  }
  const reading: Reading = { versions, consistent, kept: new Map(), follow }
  let isStopped = false
  const every = async (ms: number, work: () => Promise<unknown>) => {
    while (!isStopped) {
      await time.pause(life, ms / 2 + chance.below(ms))
      await work().catch((error: Error) => world.note(`answers 503: ${error.message}`, life))
    }
  }
  void versions.start(conditions.watchEveryMs)
  const loops = [
    every(READ_EVERY_MS, () => answer(place, reading, chance.oneOf(QUESTIONS as [Question]))),
    every(FEED_EVERY_MS, turnPage),
    ...(conditions.areReadersAttentive ? [every(conditions.watchEveryMs, () => askAgain(place, reading))] : [])
  ]
  return {
    reading,
    swaps,
    stop: async () => {
      isStopped = true
      await versions.stop()
      await Promise.all(loops)
    }
  }
}

/** Repeats the queries with a cached and possibly outdated answer, as open pages do. */
async function askAgain(place: Place, reading: Reading): Promise<void> {
  for (const question of QUESTIONS) {
    const before = reading.kept.get(question.name)
    if (before !== undefined && before.version !== reading.versions.versionOf(question.dependency))
      await answer(place, reading, question)
  }
}

/** The cached answer, if its tables are unchanged. The version is read before the query. */
export async function answer(
  { world, tables }: Place,
  { versions, consistent, kept }: Reading,
  { name, dependency, find }: Question
): Promise<string> {
  return await consistent.read(async () => {
    const version = versions.versionOf(dependency)
    const before = kept.get(name)
    if (before?.version === version) return before.answer
    const rows = await consistent.readOnce(() => lookUp(world, tables, name, find))
    const found = answerText(rows)
    kept.set(name, { version, answer: found })
    return found
  })
}

export function answerText(rows: readonly Row[]): string {
  return rows
    .map((row) =>
      JSON.stringify(row, (key, value) => (typeof value === 'bigint' || key === 'version' ? undefined : value))
    )
    .sort()
    .join('\n')
}

const now = BEGIN_MS - (BEGIN_MS % HOUR_MS)

/** Queries to every table with published changes. */
export const QUESTIONS: readonly Question[] = [
  ...TITLE_IDS.flatMap((titleId): Question[] => {
    const ofTitle = (row: Row) => row.title_id === titleId
    const isIn = (column: string) => (row: Row) =>
      ofTitle(row) && Number(row[column]) >= now && Number(row[column]) < now + HOUR_MS
    const window = { key: titleId, fromMs: now, toMs: now + HOUR_MS }
    return [
      {
        name: `counts of ${titleId}`,
        dependency: { projection: 'title-count', ...window },
        find: (tables) => tables.final('title_count').filter(isIn('ts'))
      },
      {
        name: `hour of ${titleId}`,
        dependency: { projection: 'title-count-hour', ...window },
        find: (tables) => tables.final('title_count_hour').filter(isIn('hour'))
      },
      {
        name: `hour begun of ${titleId}`,
        dependency: { projection: 'title-count-hour', key: titleId, fromMs: now, toMs: now + HOUR_MS / 6 },
        find: (tables) => tables.final('title_count_hour').filter(isIn('hour'))
      },
      {
        name: `latest of ${titleId}`,
        dependency: { projection: 'title-latest', key: titleId },
        find: (tables) => tables.final('title_latest').filter(ofTitle)
      },
      {
        name: `boards of ${titleId}`,
        dependency: { projection: 'leaderboard', key: titleId },
        find: (tables) => tables.final('leaderboard').filter(ofTitle)
      }
    ]
  }),
  {
    name: 'all entries',
    dependency: { projection: 'leaderboard-entry' },
    find: (tables) => tables.final('leaderboard_entry')
  },
  ...USERS.map(
    (user): Question => ({
      name: `ratings of ${user}`,
      dependency: { projection: 'rating', key: nameKey(user) },
      find: (tables) => tables.final('rating').filter((row) => row.user_key === nameKey(user))
    })
  )
]
