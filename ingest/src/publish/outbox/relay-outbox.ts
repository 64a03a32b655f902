import { RELAY_LOCK, type Topic, topics, type WriteSide, type WriteTransactions, withTimeout } from '@gamenet/schemas'
import type { Log } from '../../ports/log.js'
import { namesOf, sealedEvent } from '../people/encode-events.js'
import type { People, Seals } from '../people/people.js'

/*
 * outbox   events of the write side that the log may not have yet, each stored together with its change
 * relay    takes events out of the outbox: into the log first, then out of the table
 */

/** Rows that one round relays at most; with comments and biographies of full length about 3 MB. */
export const ROUND_ROWS_MAX = 500
/**
 * How long the log may take while the round's transaction is open: an embedded PostgreSQL answers no other request meanwhile.
 * A slower log is waited for outside of it, where another relay may publish the same rows, too.
 */
const HELD_MS_MAX = 2000
const PROVENANCE = { source: '/write-side' }

export type RelayNeeds = {
  readonly writes: WriteTransactions
  readonly log: Log
  readonly people: People
  /** Called for rows that are no events. They stay for an operator to inspect, and block no others. */
  readonly onUnreadable: (rows: readonly UnreadableRow[]) => void
  /** {@link HELD_MS_MAX} unless given. */
  readonly heldMsMax?: number
}

export type UnreadableRow = { readonly id: string; readonly topic: string; readonly reason: string }

/** What a round came to. `full`: there may be more. `elsewhere`: another relay is at work. */
export type Round = { readonly relayed: number; readonly outcome: 'empty' | 'full' | 'done' | 'elsewhere' }

/**
 * One round: reads the oldest rows, publishes them in the order of their ids and deletes them. Order per row of the
 * write side is kept, because ids are given while that row is locked: a row's later event is never seen without the
 * earlier ones. Another id may appear late; so only what was published is deleted, and not all that is older.
 *
 * A crash at any point loses nothing: rows are deleted after the log has stored them. Rows published and not deleted are published
 * again, as the same messages with the same ids.
 */
export async function relayOnce(needs: RelayNeeds, unreadable: ReadonlySet<string>): Promise<Round> {
  const rows = await needs.writes.query<OutboxRow>(
    `SELECT o.id, o.topic, o.event FROM outbox AS o WHERE o.id <> ALL ($1::bigint[]) ORDER BY o.id LIMIT ${ROUND_ROWS_MAX}`,
    [[...unreadable]]
  )
  if (rows.length === 0) return { relayed: 0, outcome: 'empty' }
  const { parcels, faults } = parcelsOf(rows)
  if (faults.length > 0) needs.onUnreadable(faults)
  const { isMine, relayed } = await sendAll(needs, parcels)
  if (!isMine) return { relayed: 0, outcome: 'elsewhere' }
  return { relayed, outcome: rows.length === ROUND_ROWS_MAX ? 'full' : 'done' }
}

type OutboxRow = { id: string; topic: string; event: unknown }

/** Rows of one topic that follow one another, as the log takes them. */
type Parcel = { readonly topic: Topic; readonly rows: { readonly id: string; readonly event: unknown }[] }

function parcelsOf(rows: readonly OutboxRow[]): { parcels: readonly Parcel[]; faults: readonly UnreadableRow[] } {
  const parcels = new Map<string, Parcel>()
  const faults: UnreadableRow[] = []
  for (const { id, topic: name, event } of rows) {
    const topic = topics.find((each) => each.name === name)
    const parsed = topic?.event.safeParse(event)
    if (topic === undefined || parsed?.success !== true) {
      const reason = topic === undefined ? 'there is no such topic' : 'the event does not match its schema'
      faults.push({ id, topic: name, reason })
      continue
    }
    const parcel = parcels.get(name) ?? { topic, rows: [] }
    parcels.set(name, parcel)
    // What the schema gives has its fields in one order, which a column of jsonb has not: equal events are equal bytes.
    parcel.rows.push({ id, event: parsed.data })
  }
  return { parcels: [...parcels.values()], faults }
}

async function sendAll(needs: RelayNeeds, parcels: readonly Parcel[]): Promise<{ isMine: boolean; relayed: number }> {
  let relayed = 0
  for (const { topic, rows } of parcels) {
    const events = rows.map(({ event }) => event)
    // Persons are made and kept before anything about them is in the log: the loader skips unknown people.
    const seals = await needs.people.seals(namesOf(topic, events))
    const sent = await send(needs, { topic, rows }, seals)
    if (sent === undefined) return { isMine: false, relayed }
    relayed += sent
  }
  return { isMine: true, relayed }
}

/** The number of rows that the log has now, or undefined when another relay is at work. */
async function send(needs: RelayNeeds, { topic, rows }: Parcel, seals: Seals): Promise<number | undefined> {
  const claimed: { ids: readonly string[]; appending: Promise<void> } = { ids: [], appending: Promise.resolve() }
  const outcome = await needs.writes.transaction(async (transaction) => {
    if (!(await isMine(transaction))) return 'elsewhere'
    const left = await remainingRows(transaction, rows)
    const messages = left.flatMap(({ event }) => sealedEvent(topic, event, PROVENANCE, seals) ?? [])
    if (messages.length < left.length) needs.people.passedOver(topic.name, left.length - messages.length)
    claimed.ids = left.map(({ id }) => id)
    if (messages.length > 0) claimed.appending = needs.log.append(topic.name, messages)
    // It is awaited below, unless PostgreSQL fails first.
    claimed.appending.catch(() => undefined)
    const isAppended = claimed.appending.then(() => true)
    if (!(await withTimeout(isAppended, needs.heldMsMax ?? HELD_MS_MAX, () => false))) return 'slow'
    await deleteRows(transaction, claimed.ids)
    return 'sent'
  })
  if (outcome === 'elsewhere') return undefined
  if (outcome === 'slow') {
    await claimed.appending
    await deleteRows(needs.writes, claimed.ids)
  }
  return claimed.ids.length
}

async function isMine(transaction: WriteSide): Promise<boolean> {
  const [lock] = await transaction.query<{ is_mine: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS is_mine', [
    RELAY_LOCK
  ])
  return lock?.is_mine === true
}

/** Without the rows that another relay or an erasure deleted meanwhile. */
async function remainingRows(transaction: WriteSide, rows: Parcel['rows']): Promise<Parcel['rows']> {
  const found = await transaction.query<{ id: string }>(
    'SELECT o.id FROM outbox AS o WHERE o.id = ANY ($1::bigint[])',
    [rows.map(({ id }) => id)]
  )
  const ids = new Set(found.map(({ id }) => id))
  return rows.filter(({ id }) => ids.has(id))
}

async function deleteRows(side: WriteSide, ids: readonly string[]): Promise<void> {
  await side.query('DELETE FROM outbox AS o WHERE o.id = ANY ($1::bigint[])', [ids])
}
