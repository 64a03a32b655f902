import type { Postgres } from '@gamenet/engines'
import {
  type NewestWrites,
  projections,
  readCheckpoints,
  readNewestWrites,
  type Store,
  storeAt
} from '@gamenet/projector'
import {
  errorMessage,
  type LogBatch,
  loadCheckpoint,
  type PartitionExtent,
  Refusal,
  readSealedValue,
  topics,
  withTimeout
} from '@gamenet/schemas'
import type { Logger } from 'pino'
import { FailureError } from '../config.js'
import { AWAY_MS } from './log.js'
import { readStored } from './read-stored.js'

const PEOPLE_TOPICS = topics.filter(({ people }) => people !== undefined).map(({ name }) => name)
/** Topics whose events are identified by the revision of the write side. */
const REVISED_TOPICS = ['profile', 'rating']

/** More events of the log than these are not read: a start would wait for minutes. */
const EVENTS_MAX = 1_000_000
/**
 * Unknown numbers are below the time in units of 10 µs, because writes are fewer. It has 15 digits, as many as a sealed
 * event can name.
 */
const NUMBERS_PER_MS = 100
/** Larger numbers of an imported log are ignored. */
const NUMBER_MAX = 900_000_000_000_000

/**
 * Advances the sequences of a write side that is older than the tables or than the log, after it was restored from a
 * copy or lost its last writes. Otherwise new changes and persons would reuse earlier numbers: the tables would keep
 * the older change, and another person's key would open the log's events. Lost rows are not restored. To be called
 * before anything is written, and when the checkpoints say from where on lost rows are loaded again. Of the log, only
 * what the tables lack is read. Where it cannot be read, or is long, numbering leaps over all numbers that it may have.
 */
export async function advanceSequences(
  writes: Postgres,
  store: Store,
  log: Parameters<typeof readStored>[0],
  logger: Pick<Logger, 'error' | 'warn'>
): Promise<void> {
  const { newest: known, people, unread } = await readNewest(store, log)
  await recordLostPeople(writes, known, people)
  for (const [sequence, what, newest] of [
    ['revision', 'changes of profiles and ratings', known.revision],
    ['person_id_seq', 'people', known.person]
  ] as const) {
    // The last value of an unused sequence is its first one.
    const [row] = await writes.query<{ found: string }>(
      `SELECT s.last_value - (NOT s.is_called)::int AS found FROM ${sequence} AS s`
    )
    const found = Number(row?.found)
    const next = Math.max(newest, unread === undefined ? 0 : Date.now() * NUMBERS_PER_MS)
    if (found >= next) continue
    await writes.query(
      `SELECT setval('${sequence}', greatest((SELECT s.last_value FROM ${sequence} AS s), $1::bigint))`,
      [next]
    )
    if (found < newest)
      logger.error(
        { found, newest, next, unread },
        `PostgreSQL is older than the tables or the log: its ${what} are numbered to ${found}, theirs to ${newest}. Numbering continues after ` +
          `${next}, so that later changes count. The read tables show changes that PostgreSQL has lost. ` +
          'Restore a newer copy of it, if there is one.'
      )
    else
      logger.warn(
        { found, next },
        `Whether PostgreSQL is older than the tables or the log is unknown: ${unread}. Its ${what} are numbered to ${found}, and continue ` +
          `after ${next}, so that no number is used twice if it is.`
      )
  }
}

/**
 * Records that people of the tables or the log lost their keys, before the sequence advances and others get their
 * numbers: later starts do not find it any more. The sequence does not show it: after a crash, PostgreSQL continues it
 * up to 32 numbers ahead.
 */
async function recordLostPeople(writes: Postgres, known: NewestWrites, people: ReadonlySet<number>): Promise<void> {
  const [row] = await writes.query<{ highest: string }>(
    `SELECT greatest(0, (SELECT max(p.id) FROM person AS p), (SELECT max(f.person_id) FROM forgotten AS f)) AS highest`
  )
  const highest = Number(row?.highest)
  if (highest >= known.person) return
  const inLog = [...people].filter((person) => person > highest).length
  await writes.query(ADD_LOST, [highest, Math.max(1, inLog)])
}

const ADD_LOST = `
  INSERT INTO lost_people AS l (above, people) VALUES ($1, $2)
  ON CONFLICT (above) DO UPDATE SET people = greatest(l.people, excluded.people)`

type Newest = {
  readonly newest: NewestWrites
  /** The people of the events that the tables lack. */
  readonly people: ReadonlySet<number>
  /** Why not all could be read. */
  readonly unread?: string
}

/**
 * Returns the newest numbers of the tables and of the events that they lack. Events of lost persons count, too: their
 * numbers are not encrypted.
 */
async function readNewest(store: Store, engines: Parameters<typeof readStored>[0]): Promise<Newest> {
  const newest = { revision: 0, person: 0 }
  const people = new Set<number>()
  const raise = ({ revision = 0, person = 0 }: Partial<NewestWrites>) => {
    if (revision <= NUMBER_MAX) newest.revision = Math.max(newest.revision, revision)
    if (person <= NUMBER_MAX) newest.person = Math.max(newest.person, person)
  }
  const readTables = async () => {
    const tables = await storeAt('writes', store, projections)
    raise(await tables.do(readNewestWrites))
    return await tables.do(readCheckpoints)
  }
  const checkpoints = await readTables().catch((error: unknown) => {
    if (error instanceof Refusal) return error
    throw error
  })
  if (checkpoints instanceof Refusal) return { newest, people, unread: sentencePart(checkpoints) }
  const startOf = (topic: string, { epoch, partition, first }: PartitionExtent) =>
    checkpoints.find(
      (each) => each.name === loadCheckpoint(topic) && each.epoch === epoch && each.partition === partition
    )?.next ?? first
  const take = ({ topic, records }: LogBatch) => {
    for (const { value, headers } of records) {
      for (const person of readSealedValue(value)?.people ?? []) {
        raise({ person })
        people.add(person)
      }
      if (REVISED_TOPICS.includes(topic)) raise({ revision: Number(REVISION.exec(headers.ce_id ?? '')?.[1] ?? 0) })
    }
  }
  const reached = withTimeout(engines.log.extents(PEOPLE_TOPICS[0] ?? ''), AWAY_MS, () => {
    throw new FailureError(`The log has not answered within ${AWAY_MS} ms.`)
  })
  // The loader reports events that it cannot read, and waits for their repair.
  const failure = await reached
    .then(() => readStored(engines, { topics: PEOPLE_TOPICS, eventsMax: EVENTS_MAX, startOf, take }))
    .then(() => undefined, sentencePart)
  return failure === undefined ? { newest, people } : { newest, people, unread: failure }
}

function sentencePart(error: unknown): string {
  return errorMessage(error).replace(/\.$/, '')
}

/**
 * The identity of an event in its `ce_id`, as `cloud-event.ts` of the schemas writes it. An imported log may have any
 * number there.
 */
const REVISION = /\/(\d{1,15})@[^/]*$/
