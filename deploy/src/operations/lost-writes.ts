import type { Postgres, Queries } from '@gamenet/engines'
import { readChanges, readEventUsers, type Store, type StoredChange } from '@gamenet/projector'
import { nameHashSql, topics } from '@gamenet/schemas'
import { countWithoutKey } from '../erasure/ledger.js'

/** What the log or the tables have, and a write side that is older than they lacks. A newer copy of it, or newer changes, make up for it. */
export type LostWrites = {
  /**
   * Users with events in the log or the tables whose keys are lost. Too few after several losses; those who were erased since then
   * count.
   */
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
    const userKeys = new Set<string>()
    for (const { name } of topics.filter(({ people }) => people !== undefined))
      for (const userKey of await store.do(readEventUsers, name, share)) userKeys.add(userKey)
    const stored = await store.do(readChanges, share)
    keyless += await countWithoutKey(writes, [...userKeys])
    changes += await countLost(writes, stored)
  }
  return { users: Math.max(keyless, Number(row?.people ?? 0)), changes }
}

/** Keeps the number of users whose keys are lost for later starts: until then they may get new ones. */
export async function keepLostUsers(writes: Queries, users: number): Promise<void> {
  await writes.query(KEEP_LOST, [users])
}

const KEEP_LOST = `
  INSERT INTO lost_people AS l (above, people)
  SELECT coalesce(max(p.above), 0), $1::bigint - coalesce(sum(p.people), 0) FROM lost_people AS p
  HAVING $1::bigint > coalesce(sum(p.people), 0)
  ON CONFLICT (above) DO UPDATE SET people = l.people + excluded.people`

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
