import { createHash } from 'node:crypto'
import type { Postgres, Queries } from '@gamenet/engines'
import { CHANGED_CHANNEL, nameHashSql, PEOPLE_LOCK, WRITE_NOUNS } from '@gamenet/schemas'

/*
 * erasure      deletes all rows about a person, and the key that decrypts their events
 * ledger       the table `erasure`: the erased names, as salted hashes that only this service can compute
 */

/** Notified on this channel, with an empty payload: cached answers may be about an erased person. */
export const ERASED_CHANNEL = 'gamenet_erased'

/** The tables of the write side with data about people. */
export const PEOPLE_TABLES = ['profile', 'rating', 'outbox', 'person'] as const

/** One line of the ledger. */
export type Erasure = {
  /** Hexadecimal. */
  readonly nameHash: string
  readonly erasedAt: Date
  /** Null while rows may remain in the tables. */
  readonly doneAt: Date | null
  /** When the user returned as a new person; null before. */
  readonly returnedAt: Date | null
}

/** An erasure as stored outside PostgreSQL. */
export type LedgerEntry = { readonly nameHash: string; readonly erasedAtMs: number }

/** The deleted rows of a person in the write side. */
export type ErasedFromWrites = { readonly nameHash: string; readonly rows: number }

/**
 * Deletes a user from the write side and enters them in the ledger, in one transaction. Afterwards nobody can decrypt
 * the user's events, and nothing is published about the user.
 */
export async function eraseFromWrites(writes: Postgres, userKey: string): Promise<ErasedFromWrites> {
  return await writes.transaction(async (transaction) => {
    await transaction.query('SELECT pg_advisory_xact_lock($1)', [PEOPLE_LOCK])
    // The profile first: this waits for a concurrent writer of dependent rows, which are found below.
    const profiles = await transaction.query('DELETE FROM profile AS p WHERE p.user_key = $1 RETURNING 1', [userKey])
    const ratings = await transaction.query(
      'DELETE FROM rating AS r WHERE r.user_key = $1 OR r.rater_key = $1 RETURNING 1',
      [userKey]
    )
    await transaction.query('DELETE FROM outbox AS o WHERE $1 = ANY (o.people)', [userKey])
    const persons = await transaction.query<{ id: string }>(
      'DELETE FROM person AS p WHERE p.user_key = $1 RETURNING p.id',
      [userKey]
    )
    const [entry] = await transaction.query<{ name_hash: string }>(ENTER, [userKey, persons[0]?.id ?? null])
    if (entry === undefined) throw new Error('the erasure ledger returned no entry')
    await notifyAll(transaction)
    return { nameHash: entry.name_hash, rows: profiles.length + ratings.length + persons.length }
  })
}

/** Reads the whole ledger, oldest first. */
export async function readLedger(writes: Queries): Promise<Erasure[]> {
  return await writes.query<Erasure>(
    `SELECT encode(f.name_hash, 'hex') AS "nameHash", f.erased_at AS "erasedAt", f.done_at AS "doneAt",
       f.returned_at AS "returnedAt"
     FROM erasure AS f ORDER BY f.erased_at, f.name_hash`
  )
}

/**
 * Adds erasures that this ledger lacks because it was restored from an older copy. They are pending.
 * @returns the number of added erasures
 */
export async function addToLedger(writes: Queries, entries: readonly LedgerEntry[]): Promise<number> {
  if (entries.length === 0) return 0
  const added = await writes.query(
    `INSERT INTO erasure AS f (name_hash, erased_at)
     SELECT decode(e.name_hash, 'hex'), to_timestamp(e.ms / 1000.0)
     FROM unnest($1::text[], $2::bigint[]) AS e (name_hash, ms)
     ON CONFLICT (name_hash) DO UPDATE
     SET erased_at = excluded.erased_at, done_at = NULL, returned_at = NULL
     WHERE date_trunc('milliseconds', f.erased_at) < excluded.erased_at
     RETURNING 1`,
    [entries.map(({ nameHash }) => nameHash), entries.map(({ erasedAtMs }) => String(erasedAtMs))]
  )
  return added.length
}

/**
 * Returns the name hashes of those erasures that this ledger lacks, so that the next start adds them with {@link
 * addToLedger}.
 */
export async function missingErasures(writes: Queries, entries: readonly LedgerEntry[]): Promise<string[]> {
  const rows = await writes.query<{ name_hash: string }>(
    `SELECT e.name_hash FROM unnest($1::text[], $2::bigint[]) AS e (name_hash, ms)
     WHERE NOT EXISTS (
       SELECT FROM erasure AS f
       WHERE f.name_hash = decode(e.name_hash, 'hex')
         AND date_trunc('milliseconds', f.erased_at) >= to_timestamp(e.ms / 1000.0))`,
    [entries.map(({ nameHash }) => nameHash), entries.map(({ erasedAtMs }) => String(erasedAtMs))]
  )
  return rows.map(({ name_hash }) => name_hash)
}

/** Returns whether the write side has rows of a user, or has erased the user, who has not returned. */
export async function isKnownToWrites(writes: Queries, userKey: string): Promise<boolean> {
  const [row] = await writes.query<{ is_known: boolean }>(
    `SELECT EXISTS (SELECT FROM person AS p WHERE p.user_key = $1)
       OR EXISTS (SELECT FROM profile AS p WHERE p.user_key = $1)
       OR EXISTS (SELECT FROM rating AS r WHERE $1 IN (r.user_key, r.rater_key))
       OR EXISTS (SELECT FROM outbox AS o WHERE $1 = ANY (o.people))
       OR EXISTS (
         SELECT FROM erasure AS f, erasure_salt AS s
         WHERE f.name_hash = ${nameHashSql('$1::text')} AND f.returned_at IS NULL) AS is_known`,
    [userKey]
  )
  return row?.is_known === true
}

/**
 * Returns the user_keys in the write side with one of these hashes. There are some only if an older copy was restored
 * next to a newer ledger.
 */
export async function usersInWrites(writes: Queries, nameHashes: readonly string[]): Promise<string[]> {
  const rows = await writes.query<{ user_key: string }>(
    `SELECT DISTINCT n.user_key
     FROM erasure_salt AS s, (
       SELECT p.user_key FROM person AS p
       UNION SELECT p.user_key FROM profile AS p
       UNION SELECT unnest(ARRAY[r.user_key, r.rater_key]) FROM rating AS r
       UNION SELECT unnest(o.people) FROM outbox AS o
     ) AS n
     WHERE encode(${nameHashSql('n.user_key')}, 'hex') = ANY ($1::text[])`,
    [nameHashes]
  )
  return rows.map(({ user_key }) => user_key)
}

/** Returns those of the people with a key whose names have one of these hashes. */
export async function peopleOf(
  writes: Queries,
  people: readonly number[],
  nameHashes: readonly string[]
): Promise<number[]> {
  const rows = await writes.query<{ id: string }>(
    `SELECT p.id FROM person AS p, erasure_salt AS s
     WHERE p.id = ANY ($1::bigint[]) AND encode(${nameHashSql('p.user_key')}, 'hex') = ANY ($2::text[])`,
    [people.map(String), nameHashes]
  )
  return rows.map(({ id }) => Number(id))
}

/** Returns the erased ones of these people, by number: a missing key of another one is a loss. */
export async function erasedPeople(writes: Queries, people: readonly number[]): Promise<ReadonlySet<number>> {
  const rows = await writes.query<{ id: string }>(
    'SELECT i.id FROM erasure AS e, unnest(e.person_ids) AS i (id) WHERE i.id = ANY ($1::bigint[])',
    [people.map(String)]
  )
  return new Set(rows.map(({ id }) => Number(id)))
}

/** Returns the salt of all name hashes, hexadecimal. */
export async function readSalt(writes: Queries): Promise<string> {
  const [row] = await writes.query<{ salt: string }>(`SELECT encode(s.salt, 'hex') AS salt FROM erasure_salt AS s`)
  if (row === undefined) throw new Error('the write side has no salt for the hashes of erased names; migrate it')
  return row.salt
}

/** Returns a mark that distinguishes ledgers of different installations without revealing the salt. */
export function saltMark(salt: string): string {
  return createHash('sha256').update(`ledger ${salt}`).digest('hex').slice(0, 16)
}

/** Marks an erasure as complete. */
export async function markDone(writes: Postgres, nameHash: string): Promise<void> {
  await writes.transaction(async (transaction) => {
    await transaction.query(`UPDATE erasure AS f SET done_at = now() WHERE f.name_hash = decode($1, 'hex')`, [nameHash])
    await notifyAll(transaction)
  })
}

/**
 * Notifies all processes: any cached answer may be about an erased person. The payload has no name, because PostgreSQL
 * may write it to a file.
 */
async function notifyAll(transaction: Queries): Promise<void> {
  for (const noun of WRITE_NOUNS)
    await transaction.query('SELECT pg_notify($1, $2)', [CHANGED_CHANNEL, JSON.stringify([noun, '*'])])
  await transaction.query(`SELECT pg_notify($1, '')`, [ERASED_CHANNEL])
}

const ENTER = `
  INSERT INTO erasure AS f (name_hash, person_ids, erased_at)
  SELECT ${nameHashSql('$1::text')}, array_remove(ARRAY[$2::text::bigint], NULL), now() FROM erasure_salt AS s
  ON CONFLICT (name_hash) DO UPDATE
  SET person_ids = f.person_ids || excluded.person_ids, erased_at = excluded.erased_at, done_at = NULL,
    returned_at = NULL
  RETURNING encode(f.name_hash, 'hex') AS name_hash`
