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
  topics
} from '@gamenet/schemas'
import type { Logger } from 'pino'
import { readStored } from './read-stored.js'

const PEOPLE_TOPICS = topics.filter(({ people }) => people !== undefined).map(({ name }) => name)
/** Topics whose events are identified by the revision of the write side. */
const REVISED_TOPICS = ['profile', 'rating']

/**
 * Advances the sequences of a write side that is older than the tables or than the log, after it was restored from a copy or lost its
 * last writes. Otherwise new changes and persons would reuse earlier numbers: the tables would keep the older change,
 * and another person's key would open the log's events. Lost rows are not restored. To be called before anything is
 * written, and when the checkpoints say from where on lost rows are loaded again.
 * Of the log, only what the tables lack is read.
 */
export async function advanceSequences(
  writes: Postgres,
  store: Store,
  log: Parameters<typeof readStored>[0],
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
  engines: Parameters<typeof readStored>[0],
  tables: Store,
  logger: Pick<Logger, 'error'>
): Promise<NewestWrites> {
  const newest = { revision: 0, person: 0 }
  const checkpoints = await tables.do(readCheckpoints)
  const startOf = (topic: string, { epoch, partition, first }: PartitionExtent) =>
    checkpoints.find(
      (each) => each.name === loadCheckpoint(topic) && each.epoch === epoch && each.partition === partition
    )?.next ?? first
  const take = ({ topic, records }: LogBatch) => {
    for (const { value, headers } of records) {
      newest.person = Math.max(newest.person, ...(readSealedValue(value)?.people ?? []))
      if (REVISED_TOPICS.includes(topic))
        newest.revision = Math.max(newest.revision, Number(REVISION.exec(headers.ce_id ?? '')?.[1] ?? 0))
    }
  }
  // The loader reports events that it cannot read, and waits for their repair.
  await readStored(engines, { topics: PEOPLE_TOPICS, startOf, take }).catch((error: unknown) => {
    logger.error(
      `The newest events of the log cannot be compared with PostgreSQL until the next start: ${errorMessage(error)}.`
    )
  })
  return newest
}

/** The identity of an event in its `ce_id`, as `cloud-event.ts` of the schemas writes it. An imported log may have any number there. */
const REVISION = /\/(\d{1,15})@[^/]*$/
