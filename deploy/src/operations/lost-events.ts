import type { ChangedRow } from '@gamenet/api'
import type { Queries } from '@gamenet/engines'
import { countDeadLetters, readChangesOf, type Store } from '@gamenet/projector'
import { profileTopic, ratingTopic } from '@gamenet/schemas'
import { readLedger, usersInWrites } from '../erasure/ledger.js'

/**
 * Returns the profiles and ratings whose newest state neither the outbox nor the log nor the tables have: log and tables are
 * older copies. Returns none if as many dead letters of these topics explain it, and undefined if the tables do not catch up with the log.
 */
export async function findLostEvents(
  store: Store,
  writes: Queries,
  {
    erasedAgain = [],
    haveCaughtUp
  }: {
    /** The name hashes of users that the next start erases. */
    readonly erasedAgain?: readonly string[]
    readonly haveCaughtUp: (topics: readonly string[]) => Promise<boolean>
  }
): Promise<readonly ChangedRow[] | undefined> {
  const suspects: WrittenRow[] = []
  for await (const rows of readWritten(writes)) suspects.push(...(await lackedBy(store, rows)))
  // Read after the rows and before the log's ends: a change that has left the outbox is in the log.
  const outbox = await writes.query<{ revision: string }>(
    `SELECT o.event ->> 'revision' AS revision FROM outbox AS o WHERE o.event ? 'revision'`
  )
  const waiting = new Set(outbox.map(({ revision }) => Number(revision)))
  const published = suspects.filter(({ revision }) => !waiting.has(revision))
  if (published.length === 0) return []
  if (!(await haveCaughtUp([profileTopic.name, ratingTopic.name]))) return undefined
  const lost = await lackedBy(store, published)
  const deadLetters = await store.do(countDeadLetters)
  if (lost.length <= (deadLetters.get(profileTopic.name) ?? 0) + (deadLetters.get(ratingTopic.name) ?? 0)) return []
  // An erasure deletes the rows of the write side before those of the tables.
  const left = await revisionsLeft(writes, lost)
  const pending = (await readLedger(writes)).filter(({ doneAt }) => doneAt === null)
  const erased = await usersInWrites(writes, [...pending.map(({ nameHash }) => nameHash), ...erasedAgain])
  const isErased = (userKey: string | null) => userKey !== null && erased.includes(userKey)
  return lost.filter(
    ({ userKey, raterKey, revision }) => left.has(revision) && !isErased(userKey) && !isErased(raterKey)
  )
}

type WrittenRow = ChangedRow & {
  readonly revision: number
  /** False for a profile of defaults: it was published only if the tables have an event of it. */
  readonly isPublished: boolean
}

/** Small, because the names of their users are parameters of a statement. */
const ROWS_PER_STATEMENT = 2000

/** Reads all profiles and ratings in blocks. */
async function* readWritten(writes: Queries): AsyncGenerator<readonly WrittenRow[]> {
  for (const sql of [READ_PROFILES, READ_RATINGS])
    for (let after: readonly [string, string] | undefined = ['', '']; after !== undefined; ) {
      const rows: readonly WrittenRow[] = await writes.query<WrittenRow>(sql, [after, ROWS_PER_STATEMENT])
      yield rows.map((row) => ({ ...row, revision: Number(row.revision) }))
      const last = rows.length < ROWS_PER_STATEMENT ? undefined : rows.at(-1)
      after = last && [last.userKey, last.raterKey ?? '']
    }
}

const READ_PROFILES = `
  SELECT r.user_key AS "userKey", NULL AS "raterKey", r.revision,
    concat(r.avatar_url, r.avatar_hue, r.display_name_override, r.linked_gamertag, r.session_gamertag, r.bio, r.chat_profile_url) <> ''
      AS "isPublished"
  FROM profile AS r
  WHERE r.user_key > ($1::text[])[1]
  ORDER BY r.user_key LIMIT $2`

const READ_RATINGS = `
  SELECT r.user_key AS "userKey", r.rater_key AS "raterKey", r.revision, true AS "isPublished"
  FROM rating AS r
  WHERE (r.user_key, r.rater_key) > (($1::text[])[1], ($1::text[])[2])
  ORDER BY r.user_key, r.rater_key LIMIT $2`

/** Returns the published ones of the rows that the tables lack at this revision and at any later one. */
async function lackedBy(store: Store, rows: readonly WrittenRow[]): Promise<WrittenRow[]> {
  const lacked: WrittenRow[] = []
  for (let first = 0; first < rows.length; first += ROWS_PER_STATEMENT) {
    const some = rows.slice(first, first + ROWS_PER_STATEMENT)
    const stored = await store.do(readChangesOf, [...new Set(some.map(({ userKey }) => userKey))])
    const newest = new Map(stored.map((change) => [keyOf(change), change.revision]))
    lacked.push(
      ...some.filter((row) => {
        const revision = newest.get(keyOf(row))
        return revision === undefined ? row.isPublished : revision < row.revision
      })
    )
  }
  return lacked
}

/** A key for a profile or rating; names contain no control characters. */
function keyOf({ userKey, raterKey }: ChangedRow): string {
  return `${userKey}\n${raterKey ?? ''}`
}

/** Returns the revisions of the rows that the write side still has. All changes have different revisions. */
async function revisionsLeft(writes: Queries, rows: readonly WrittenRow[]): Promise<ReadonlySet<number>> {
  const left = await writes.query<{ revision: string }>(
    `SELECT p.revision FROM profile AS p WHERE p.revision = ANY ($1::bigint[])
     UNION ALL SELECT r.revision FROM rating AS r WHERE r.revision = ANY ($1::bigint[])`,
    [rows.map(({ revision }) => String(revision))]
  )
  return new Set(left.map(({ revision }) => Number(revision)))
}
