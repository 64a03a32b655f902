import { randomBytes } from 'node:crypto'
import {
  nameHashSql,
  nameKey,
  PEOPLE_LOCK,
  SEAL_KEY_BYTES,
  type Seal,
  type WriteSide,
  type WriteTransactions
} from '@gamenet/schemas'
import { Counter, type Registry } from 'prom-client'

/** Seals by user_key. An erased person has none. */
export type Seals = ReadonlyMap<string, Seal>

/** The subjects of events, for publishing. */
export type People = {
  /**
   * Returns the seals of users, by `nameKey` of their names. A new user gets a seal, which is stored before this
   * resolves; an erased user gets none.
   */
  seals(usernames: Iterable<string>): Promise<Seals>
  /** Called for events that were not published because their subject was erased. */
  passedOver(topic: string, events: number): void
}

/**
 * People of the write side. Nothing is cached: one statement finds all people of a batch, and a deleted key is never
 * used again.
 * @param options.writes opens the write side with its newest schema; called for the first person
 */
export function createPeople({
  writes,
  registry
}: {
  readonly writes: () => Promise<WriteTransactions>
  readonly registry: Registry
}): People {
  const passedOver = new Counter({
    name: 'gamenet_erased_events_total',
    help: 'Events that were not published, because their subject was erased',
    labelNames: ['topic'],
    registers: [registry]
  })
  return {
    async seals(usernames) {
      const userKeys = [...new Set([...usernames].map(nameKey))]
      if (userKeys.length === 0) return new Map()
      const side = await writes()
      const known = await knownSeals(side, userKeys)
      const unknown = userKeys.filter((userKey) => !known.has(userKey))
      if (unknown.length === 0) return known
      const made = await side.transaction((transaction) => makePersons(transaction, unknown))
      return new Map([...known, ...made])
    },
    passedOver: (topic, events) => passedOver.inc({ topic }, events)
  }
}

/** Returns the seal keys of persons by number, without those of erased persons. */
export async function sealKeys(writes: WriteSide, ids: readonly number[]): Promise<ReadonlyMap<number, Uint8Array>> {
  const rows = await writes.query<{ id: string; seal_key: Uint8Array }>(
    'SELECT p.id, p.seal_key FROM person AS p WHERE p.id = ANY ($1::bigint[])',
    [ids.map(String)]
  )
  return new Map(rows.map((row) => [Number(row.id), new Uint8Array(row.seal_key)]))
}

async function makePersons(transaction: WriteSide, userKeys: readonly string[]): Promise<Seals> {
  // A separate statement, so that it sees the commits made during this one's wait.
  await transaction.query('SELECT pg_advisory_xact_lock_shared($1)', [PEOPLE_LOCK])
  const sealKeysHex = userKeys.map(() => randomBytes(SEAL_KEY_BYTES).toString('hex'))
  await transaction.query(
    `INSERT INTO person (user_key, seal_key)
     SELECT n.user_key, decode(n.seal_key, 'hex')
     FROM unnest($1::text[], $2::text[]) AS n (user_key, seal_key)
     WHERE NOT EXISTS (
       SELECT FROM erasure AS f, erasure_salt AS s
       WHERE f.name_hash = ${nameHashSql('n.user_key')} AND f.returned_at IS NULL)
     ORDER BY n.user_key
     ON CONFLICT (user_key) DO NOTHING`,
    [userKeys, sealKeysHex]
  )
  return await knownSeals(transaction, userKeys)
}

async function knownSeals(side: WriteSide, userKeys: readonly string[]): Promise<Seals> {
  const rows = await side.query<{ id: string; user_key: string; seal_key: Uint8Array }>(
    'SELECT p.id, p.user_key, p.seal_key FROM person AS p WHERE p.user_key = ANY ($1::text[])',
    [userKeys]
  )
  return new Map(rows.map((row) => [row.user_key, { id: Number(row.id), key: new Uint8Array(row.seal_key) }]))
}
