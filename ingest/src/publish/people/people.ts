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

/** Who events are about, as publishing asks. */
export type People = {
  /**
   * The seals of these users, by `nameKey` of their names. Who has none gets one, which is kept before this resolves;
   * who was erased gets none.
   */
  seals(usernames: Iterable<string>): Promise<Seals>
  /** Called for events that were not published, because their subject was erased. */
  passedOver(topic: string, events: number): void
}

/**
 * People of the write side. Nothing is remembered here: one statement finds all people of a batch, and a key that was
 * thrown away is not used again.
 * @param options.writes opens the write side, at its newest schema; called when the first person is asked for
 */
export function createPeople({
  writes,
  registry
}: {
  readonly writes: () => Promise<WriteTransactions>
  readonly registry: Registry
}): People {
  const passedOver = new Counter({
    name: 'gamenet_forgotten_events_total',
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

/** The seal keys of persons by their numbers; those of erased persons are missing. */
export async function sealKeys(writes: WriteSide, ids: readonly number[]): Promise<ReadonlyMap<number, Uint8Array>> {
  const rows = await writes.query<{ id: string; seal_key: Uint8Array }>(
    'SELECT p.id, p.seal_key FROM person AS p WHERE p.id = ANY ($1::bigint[])',
    [ids.map(String)]
  )
  return new Map(rows.map((row) => [Number(row.id), new Uint8Array(row.seal_key)]))
}

async function makePersons(transaction: WriteSide, userKeys: readonly string[]): Promise<Seals> {
  // A statement of its own: the next one then sees the commits during this one's wait.
  await transaction.query('SELECT pg_advisory_xact_lock_shared($1)', [PEOPLE_LOCK])
  const sealKeysHex = userKeys.map(() => randomBytes(SEAL_KEY_BYTES).toString('hex'))
  await transaction.query(
    `INSERT INTO person (user_key, seal_key)
     SELECT n.user_key, decode(n.seal_key, 'hex')
     FROM unnest($1::text[], $2::text[]) AS n (user_key, seal_key)
     WHERE NOT EXISTS (
       SELECT FROM forgotten AS f, forgetting_salt AS s
       WHERE f.name_hash = ${nameHashSql('n.user_key', 's.salt')} AND f.returned_at IS NULL)
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
