import type { Postgres } from '@gamenet/engines'
import {
  type NewestWrites,
  projections,
  readCheckpoints,
  readNewestWrites,
  type Store,
  storeAt
} from '@gamenet/projector'
import { errorMessage, type LogRecord, loadCheckpoint, peopleOfValue, Refusal, topics } from '@gamenet/schemas'
import type { Logger } from 'pino'
import type { OpenLog } from './log.js'

const PEOPLE_TOPICS = topics.filter(({ people }) => people !== undefined).map(({ name }) => name)
/** Topics whose events are identified by the revision of the write side. */
const REVISED_TOPICS = ['profile', 'rating']

/**
 * Advances the sequences of a write side that is older than the tables or than the log, after it was restored from a copy or lost its
 * last writes. Otherwise new changes and persons would reuse earlier numbers: the tables would keep the older change,
 * and another person's key would open the log's events. Lost rows are not restored. To be called before anything is
 * written, and when the checkpoints say from where on lost rows are loaded again.
 *
 * Of the log, only what the tables lack is read, and only of an embedded one: a reader of Kafka would have to join a group.
 */
export async function advanceSequences(
  writes: Postgres,
  store: Store,
  log: Pick<OpenLog, 'consume' | 'extents' | 'files'>,
  logger: Pick<Logger, 'error'>
): Promise<void> {
  const read = async () => {
    const tables = await storeAt('writes', store, projections)
    return [await tables.do(readNewestWrites), await readNewestOfLog(log, tables, logger)]
  }
  const known = await read().catch((error: unknown) => {
    // If a server is unavailable, the next start checks it.
    if (error instanceof Refusal) return undefined
    throw error
  })
  if (known === undefined) return
  for (const [sequence, what, newest] of [
    ['revision', 'changes of profiles and ratings', Math.max(...known.map(({ revision }) => revision))],
    ['person_id_seq', 'people', Math.max(...known.map(({ person }) => person))]
  ] as const) {
    // The last value of an unused sequence is its first one.
    const [row] = await writes.query<{ found: string }>(
      `SELECT s.last_value - (NOT s.is_called)::int AS found FROM ${sequence} AS s`
    )
    const found = Number(row?.found)
    if (found >= newest) continue
    await writes.query(
      `SELECT setval('${sequence}', greatest((SELECT s.last_value FROM ${sequence} AS s), $1::bigint))`,
      [newest]
    )
    logger.error(
      { found, newest },
      `PostgreSQL is older than the tables or the log: its ${what} are numbered to ${found}, theirs to ${newest}. Numbering continues after ` +
        'these, so that later changes count. The read tables show changes that PostgreSQL has lost. ' +
        'Restore a newer copy of it, if there is one.'
    )
  }
}

/** Returns the newest numbers of the events that the tables lack. Events of lost persons count, too: their numbers are not encrypted. */
async function readNewestOfLog(
  log: Parameters<typeof advanceSequences>[2],
  tables: Store,
  logger: Pick<Logger, 'error'>
): Promise<NewestWrites> {
  const newest = { revision: 0, person: 0 }
  if (log.files === undefined) return newest
  const checkpoints = await tables.do(readCheckpoints)
  for (const topic of PEOPLE_TOPICS) {
    const loaded = checkpoints.filter(({ name }) => name === loadCheckpoint(topic))
    const take = (record: LogRecord) => {
      const value = typeof record.value === 'string' ? record.value : ''
      newest.person = Math.max(newest.person, ...peopleOfValue(value))
      if (REVISED_TOPICS.includes(topic))
        newest.revision = Math.max(newest.revision, Number(REVISION.exec(record.headers.ce_id ?? '')?.[1] ?? 0))
    }
    // The loader reports events that it cannot read, and waits for their repair.
    await readFrom(log, topic, loaded, take).catch((error: unknown) => {
      logger.error(
        { topic },
        `The newest events of the log cannot be compared with PostgreSQL: ${errorMessage(error)}.`
      )
    })
  }
  return newest
}

/** The identity of an event in its `ce_id`, as `cloud-event.ts` of the schemas writes it. An imported log may have any number there. */
const REVISION = /\/(\d{1,15})@[^/]*$/

/** Reads a topic of an embedded log from checkpoints to its present end. */
async function readFrom(
  log: Pick<OpenLog, 'consume' | 'extents'>,
  topic: string,
  checkpoints: readonly { readonly epoch: number; readonly partition: number; readonly next: number }[],
  take: (record: LogRecord) => void
): Promise<void> {
  const key = (place: { epoch: number; partition: number }) => `${place.epoch}/${place.partition}`
  const loaded = new Map(checkpoints.map((each) => [key(each), each.next]))
  const ends = new Map<string, number>()
  const starts = new Map<string, number>()
  for (const extent of await log.extents(topic)) {
    const start = Math.min(Math.max(loaded.get(key(extent)) ?? 0, extent.first), extent.next)
    starts.set(key(extent), start)
    if (start < extent.next) ends.set(key(extent), extent.next)
  }
  const ended = new AbortController()
  if (ends.size === 0) return
  await log.consume({
    topics: [topic],
    signal: ended.signal,
    startAt: async (_topic, epoch, partition) => starts.get(key({ epoch, partition })) ?? 0,
    deliver: async ({ records, ...place }) => {
      for (const record of records) take(record)
      if ((records.at(-1)?.offset ?? -1) + 1 >= (ends.get(key(place)) ?? 0)) ends.delete(key(place))
      if (ends.size === 0) ended.abort()
    }
  })
}
