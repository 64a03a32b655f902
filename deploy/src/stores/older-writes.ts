import type { Postgres, Queries } from '@gamenet/engines'
import { type NewestWrites, projections, readNewestWrites, type Store, storeAt } from '@gamenet/projector'
import { NUMBERS_LOCK } from '@gamenet/schemas'
import { FilesDamaged } from '../config.js'
import { NEWER_WRITES, undefinedIfDamaged } from './engine-failures.js'

/*
 * older    PostgreSQL was restored from an older copy, or deleted: the tables know a person or a change with a higher
 *          number than it
 * numbers  of people and of changes of profiles and ratings. They are never used twice: the tables would keep the older
 *          change, and another person's key would open the log's events. Each start continues them at the clock, in
 *          units of 10 µs, because writes are fewer. These have 15 digits, as many as a sealed event can name
 */

const NUMBERS_PER_MS = 100

/** What PostgreSQL lacks; undefined if it is not older than the tables. */
export type OlderWrites = { readonly tables: NewestWrites; readonly writes: NewestWrites }

/**
 * Refuses a write side that is older than the tables, and leaves its numbers as they are, so that the next start
 * refuses it too. With `isAccepted`, the numbers of the tables are recorded: later starts compare with what lies above
 * them. Otherwise continues the numbers at the clock. To be called before anything gets a number. Unreadable tables
 * show no number.
 */
export async function requireNewestWrites(writes: Postgres, store: Store, isAccepted: boolean): Promise<void> {
  const tables = await newestOfTables(store)
  await writes.transaction(async (queries) => {
    await queries.query('SELECT pg_advisory_xact_lock($1)', [NUMBERS_LOCK])
    const older = await compare(queries, tables)
    if (older !== undefined && !isAccepted) throw new FilesDamaged('writes', sentenceOf(older), NEWER_WRITES)
    // Tables of the same age do not show what only the log has.
    if (isAccepted) await queries.query(ACCEPT, [tables.person, tables.revision])
    await continueNumbers(queries)
  })
}

/**
 * Compares the write side with the tables. The tables are read first: whatever they have was in the write side before.
 */
export async function olderWrites(writes: Queries, store: Store): Promise<OlderWrites | undefined> {
  return await compare(writes, await newestOfTables(store))
}

/** Returns whether an operator has accepted that this write side lacks keys of people. */
export async function isAcceptedOlder(writes: Queries): Promise<boolean> {
  return (await writes.query('SELECT FROM accepted_older')).length > 0
}

/** Continues the numbers of people and changes at the clock; a log from elsewhere may have any number below. */
export async function continueNumbers(writes: Queries): Promise<void> {
  const next = Date.now() * NUMBERS_PER_MS
  for (const sequence of ['revision', 'person_id_seq'])
    await writes.query(
      `SELECT setval('${sequence}', $1::bigint) FROM ${sequence} AS s WHERE s.last_value < $1::bigint`,
      [next]
    )
}

export function sentenceOf({ tables, writes }: OlderWrites): string {
  return (
    `PostgreSQL is older than the tables: it has people up to number ${writes.person} and changes up to ` +
    `${writes.revision}, the tables have people up to ${tables.person} and changes up to ${tables.revision}`
  )
}

async function newestOfTables(store: Store): Promise<NewestWrites> {
  const read = async () => await (await storeAt('writes', store, projections)).do(readNewestWrites)
  return (await read().catch(undefinedIfDamaged)) ?? { person: 0, revision: 0 }
}

async function compare(writes: Queries, tables: NewestWrites): Promise<OlderWrites | undefined> {
  const [row] = await writes.query<{ person: string; revision: string }>(NEWEST)
  const own = { person: Number(row?.person), revision: Number(row?.revision) }
  return tables.person > own.person || tables.revision > own.revision ? { tables, writes: own } : undefined
}

/** After a crash, a sequence is up to 32 ahead, so that of people does not show the highest one. */
const NEWEST = `
  SELECT greatest(0, (SELECT max(p.id) FROM person AS p),
      (SELECT max(i.id) FROM erasure AS e, unnest(e.person_ids) AS i (id)),
      (SELECT a.person FROM accepted_older AS a)) AS person,
    greatest((SELECT s.last_value - (NOT s.is_called)::int FROM revision AS s),
      (SELECT a.revision FROM accepted_older AS a)) AS revision`

const ACCEPT = `
  INSERT INTO accepted_older AS a (person, revision) VALUES ($1, $2)
  ON CONFLICT (is_only) DO UPDATE
  SET person = greatest(a.person, excluded.person), revision = greatest(a.revision, excluded.revision),
    accepted_at = now()`
