import type { ChangedRow } from '@gamenet/api'
import type { Queries } from '@gamenet/engines'
import { readChanges, type Store } from '@gamenet/projector'
import { profileTopic, ratingTopic } from '@gamenet/schemas'
import { readLedger, usersInWrites } from '../erasure/ledger.js'

/**
 * Returns the profiles and ratings whose newest state neither the outbox nor the log nor the tables have: log and tables are
 * older copies. Returns undefined if the tables do not catch up with the log.
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
  // Read first: a change that is not in the outbox is in the log, whose ends are read next.
  const lost = await readPublished(writes)
  if (!(await haveCaughtUp([profileTopic.name, ratingTopic.name]))) return undefined
  for (const change of await store.do(readChanges)) {
    const written = lost.get(keyOf(change))
    if (written === undefined) continue
    if (written.revision <= change.revision) lost.delete(keyOf(change))
    else written.isPublished = true
  }
  const found = [...lost.values()].filter(({ isPublished }) => isPublished)
  if (found.length === 0) return []
  // An erasure deletes the rows of the write side before those of the tables.
  const left = await readPublished(writes)
  const pending = (await readLedger(writes)).filter(({ doneAt }) => doneAt === null)
  const erased = await usersInWrites(writes, [...pending.map(({ nameHash }) => nameHash), ...erasedAgain])
  const isErased = (userKey: string | null) => userKey !== null && erased.includes(userKey)
  return found.filter(
    (row) => left.get(keyOf(row))?.revision === row.revision && !isErased(row.userKey) && !isErased(row.raterKey)
  )
}

type WrittenRow = ChangedRow & { readonly revision: number; isPublished: boolean }

/** A key for a profile or rating; names contain no control characters. */
function keyOf({ userKey, raterKey }: ChangedRow): string {
  return `${userKey}\n${raterKey ?? ''}`
}

const ROWS_PER_STATEMENT = 10_000

/** Reads profiles and ratings whose newest state is not in the outbox. One of defaults was published only if the tables have an event of it. */
async function readPublished(writes: Queries): Promise<Map<string, WrittenRow>> {
  const found = new Map<string, WrittenRow>()
  for (const sql of [READ_PROFILES, READ_RATINGS])
    for (let after: readonly [string, string] | undefined = ['', '']; after !== undefined; ) {
      const rows: readonly WrittenRow[] = await writes.query<WrittenRow>(sql, [after, ROWS_PER_STATEMENT])
      for (const row of rows) found.set(keyOf(row), { ...row, revision: Number(row.revision) })
      const last = rows.length < ROWS_PER_STATEMENT ? undefined : rows.at(-1)
      after = last && [last.userKey, last.raterKey ?? '']
    }
  return found
}

// All changes have different revisions.
const NOT_IN_OUTBOX = `NOT EXISTS (SELECT FROM outbox AS o WHERE (o.event ->> 'revision')::bigint = r.revision)`

const READ_PROFILES = `
  SELECT r.user_key AS "userKey", NULL AS "raterKey", r.revision,
    concat(r.avatar_url, r.avatar_hue, r.display_name_override, r.linked_gamertag, r.session_gamertag, r.bio, r.chat_profile_url) <> ''
      AS "isPublished"
  FROM profile AS r
  WHERE r.user_key > ($1::text[])[1] AND ${NOT_IN_OUTBOX}
  ORDER BY r.user_key LIMIT $2`

const READ_RATINGS = `
  SELECT r.user_key AS "userKey", r.rater_key AS "raterKey", r.revision, true AS "isPublished"
  FROM rating AS r
  WHERE (r.user_key, r.rater_key) > (($1::text[])[1], ($1::text[])[2]) AND ${NOT_IN_OUTBOX}
  ORDER BY r.user_key, r.rater_key LIMIT $2`
