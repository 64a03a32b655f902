import { type AnswerContext, DataVersions } from '@gamenet/api'
import { type ChangeRow, type PartitionPlace, readFeed } from '@gamenet/api/internals'
import { type ReadSide, readSide } from '@gamenet/projector'
import { isTableDropped, retryDropped, type ServingTables, withServing } from '@gamenet/schemas'
import { QUERIES, type SimulatedQuery } from './answer-queries.js'
import { ALL_CHANGES } from './operations/queries.js'
import type { Place } from './place.js'
import type { Process, Running } from './process.js'
import { type Read, type Shown, shownBy } from './promises.js'
import { lookUp, queriesIn, storeIn, type Tables } from './store.js'
import { Streaming, type Subscriber } from './subscriber.js'
import type { Row } from './tables/replacing-table.js'

const READ_EVERY_MS = 1500
const FEED_EVERY_MS = 4000
const CONNECT_EVERY_MS = 6000

/** A client's position in the feed of changes. The client stores it, so any process can continue. */
export class Follower {
  readonly seen: ChangeRow[] = []
  places: readonly PartitionPlace[] = []
}

/** The cached answers of a process. */
export type Reading = {
  readonly versions: DataVersions
  readonly kept: Map<string, { identity: string; answer: string }>
  /** The positions that answers have shown, by projection. */
  shown: Shown
  /** Reads the feed of changes and the stream to their end. */
  follow(): Promise<void>
}

/** Answers queries, and caches an answer while its identity stays the same. */
export function runReader(
  place: Place,
  process: Process,
  { follower, subscriber }: { readonly follower: Follower; readonly subscriber: Subscriber }
): Running & { readonly reading: Reading } {
  const { world, bug, conditions } = place
  const { time, chance } = world
  const { life } = process
  const tables = queriesIn(world, place.tables)
  const side = bug.readSide(readSide(storeIn(world, place.tables, {}, false)))
  const versions = new DataVersions(side)
  let lastRead: Promise<unknown> = Promise.resolve()
  /** Reads pages one after the other: each cursor is used once. */
  const readNextPage = (): Promise<number> => {
    const read = lastRead.then(readPage)
    lastRead = read.catch(() => undefined)
    return read
  }
  const readPage = async (): Promise<number> => {
    const query = { filter: ALL_CHANGES, limit: chance.between(1, 12), places: follower.places }
    const page = await retryDropped(versions, () => readFeed(query, contextOf(tables, side, versions.serving)))
    follower.seen.push(...page.rows)
    follower.places = page.next
    return page.rows.length
  }
  const streaming = new Streaming(place, process, subscriber, { tables, side, versions })
  const follow = async () => {
    while ((await readNextPage()) > 0);
    await streaming.connect()
  }
  const reading: Reading = { versions, kept: new Map(), shown: new Map(), follow }
  let isStopped = false
  const every = async (ms: number, work: () => Promise<unknown>) => {
    while (!isStopped) {
      await time.pause(life, ms / 2 + chance.below(ms))
      await work().catch((error: Error) => {
        world.note(`answers 503: ${error.message}`, life)
        if (isTableDropped(error)) place.promises.broken.push(`an answer met a dropped table twice: ${error.message}`)
      })
    }
  }
  void versions.start(conditions.watchEveryMs)
  const loops = [
    every(READ_EVERY_MS, () => answer(place, reading, chance.oneOf(QUERIES as [SimulatedQuery]))),
    every(FEED_EVERY_MS, readNextPage),
    every(CONNECT_EVERY_MS, () => streaming.connect()),
    ...(conditions.areReadersAttentive ? [every(conditions.watchEveryMs, () => repeatQueries(place, reading))] : [])
  ]
  return {
    reading,
    stop: async () => {
      isStopped = true
      streaming.stop()
      await versions.stop()
      await Promise.all(loops)
    }
  }
}

function contextOf(tables: ReturnType<typeof queriesIn>, { positions }: ReadSide, serving: ServingTables) {
  return {
    tables: withServing(tables, serving),
    positions: (names: readonly string[]) => positions(serving, names),
    signal: new AbortController().signal
  } as unknown as AnswerContext
}

/** Repeats earlier queries, as open pages do; most answers are cached. */
async function repeatQueries(place: Place, reading: Reading): Promise<void> {
  for (const query of QUERIES) if (reading.kept.has(query.name)) await answer(place, reading, query)
}

/** Returns the cached answer if its identity is unchanged. Versions and pointers are read before the tables. */
export async function answer(place: Place, reading: Reading, query: SimulatedQuery): Promise<string> {
  const { world, tables, promises, bug } = place
  const { versions, kept } = reading
  return await retryDropped(versions, async () => {
    const { serving } = versions
    const identity = bug.identity(query, serving, versions)
    const named = query.reads.map(({ table, projection }) => ({ table, projection, name: serving.nameOf(table) }))
    promises.requireOwnIdentity(query.name, identity, named)
    const before = kept.get(query.name)
    if (before?.identity === identity) return before.answer
    const { shown } = reading
    const rows: Row[] = []
    const reads: (Read & ReturnType<typeof promises.positionOf>)[] = []
    for (const { table, projection, isWanted = () => true } of query.reads) {
      const read = { table, projection, name: serving.nameOf(table) }
      await lookUp(world, tables, read.name, (final) => {
        reads.push({ ...read, ...promises.positionOf(read) })
        rows.push(...final.filter(isWanted))
      })
    }
    const found = answerText(rows)
    promises.requireOneInstant(query.name, reads)
    promises.requireNotBehind(query.name, shown, reads)
    reading.shown = shownBy(reading.shown, reads)
    kept.set(query.name, { identity, answer: found })
    return found
  })
}

/** Returns the answer according to the current tables. */
export function answerIn(tables: Tables, { reads }: SimulatedQuery): string {
  const { serving } = tables.pointers
  return answerText(
    reads.flatMap(({ table, isWanted = () => true }) => tables.final(serving.nameOf(table)).filter(isWanted))
  )
}

export function answerText(rows: readonly Row[]): string {
  return rows
    .map((row) =>
      JSON.stringify(row, (key, value) => (typeof value === 'bigint' || key === 'version' ? undefined : value))
    )
    .sort()
    .join('\n')
}
