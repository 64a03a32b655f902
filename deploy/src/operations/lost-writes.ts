import type { Postgres, Queries } from '@gamenet/engines'
import { readChanges, readEventUsers, type Store, type StoredChange, type UserShare } from '@gamenet/projector'
import { nameHashSql, topics } from '@gamenet/schemas'
import { countWithoutKey } from '../erasure/ledger.js'

/** What the log or the tables have, and a write side that is older than they lacks. A newer copy of it, or newer changes, make up for it. */
export type LostWrites = {
  /** Users with events and without a key; at most, if some of them were erased. */
  readonly users: number
  /** Profiles and ratings at their newest revision. */
  readonly changes: number
}

/** Compares the tables with the write side. The tables are read first: whatever they have was in the write side before. */
export async function findLostWrites(store: Store, writes: Postgres): Promise<LostWrites> {
  const [row] = await writes.query<{ rows: string; people: string | null }>(
    `SELECT (SELECT count(*) FROM person) + (SELECT count(*) FROM rating) AS rows, sum(l.people) AS people
     FROM lost_people AS l`
  )
  const of = Math.ceil((Number(row?.rows) + 1) / ROWS_A_SHARE)
  let [keyless, changes] = [0, 0]
  for (let index = 0; index < of; index += 1) {
    const share = { index, of }
    const stored = await store.do(readChanges, share)
    keyless += await countKeyless(store, writes, share)
    changes += await countLost(writes, stored)
  }
  return { users: Math.max(keyless, Number(row?.people ?? 0)), changes }
}

/** Counts the users with events in the tables and without a key, except erased ones. */
export async function countKeyless(
  store: Store,
  writes: Queries,
  share: UserShare = { index: 0, of: 1 }
): Promise<number> {
  const userKeys = new Set<string>()
  for (const { name } of topics.filter(({ people }) => people !== undefined))
    for (const userKey of await store.do(readEventUsers, name, share)) userKeys.add(userKey)
  return await countWithoutKey(writes, [...userKeys])
}

/** With a million ratings at once, the comparison took 620 MiB. */
const ROWS_A_SHARE = 100_000

const CHANGES_PER_STATEMENT = 10_000

/** Counts the changes that the write side has neither at this revision nor at a later one, without those of erased users. */
async function countLost(writes: Queries, changes: readonly StoredChange[]): Promise<number> {
  let count = 0
  for (let first = 0; first < changes.length; first += CHANGES_PER_STATEMENT) {
    const some = changes.slice(first, first + CHANGES_PER_STATEMENT)
    const [row] = await writes.query<{ lost: string }>(COUNT_LOST, [
      some.map(({ userKey }) => userKey),
      some.map(({ raterKey }) => raterKey),
      some.map(({ revision }) => String(revision))
    ])
    count += Number(row?.lost)
  }
  return count
}

const COUNT_LOST = `
  WITH missing AS MATERIALIZED (
    SELECT n.user_key, n.rater_key
    FROM unnest($1::text[], $2::text[], $3::bigint[]) AS n (user_key, rater_key, revision)
    LEFT JOIN profile AS p ON n.rater_key IS NULL AND p.user_key = n.user_key
    LEFT JOIN rating AS r ON r.user_key = n.user_key AND r.rater_key = n.rater_key
    WHERE coalesce(p.revision, r.revision, 0) < n.revision
  )
  SELECT count(*) AS lost FROM missing AS m, forgetting_salt AS s
  WHERE NOT EXISTS (
    SELECT FROM forgotten AS f WHERE f.name_hash IN (${nameHashSql('m.user_key')}, ${nameHashSql('m.rater_key')}))`
