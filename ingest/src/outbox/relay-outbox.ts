import { type Topic, topics, withTimeout } from '@gamenet/schemas'
import { namesOf, sealedEvent } from '../people/encode-events.js'
import type { People, Seals } from '../people/people.js'
import type { Log } from '../ports/log.js'
import type { Outbox, OutboxRow } from './outbox.js'

/*
 * outbox   events of the write side that the log may lack, each stored together with its change
 * relay    publishes events of the outbox to the log, then deletes them from the table
 */

/** Maximum number of rows per round, about 3 MB with comments and biographies of full length. */
export const ROUND_ROWS_MAX = 500
/**
 * Longest wait for the log inside the round's transaction: an embedded PostgreSQL answers no other request meanwhile. A
 * slower log is awaited outside, where another relay may publish the same rows, too.
 */
const HELD_MS_MAX = 2000
const PROVENANCE = { source: '/write-side' }

export type RelayNeeds = {
  readonly outbox: Outbox
  readonly log: Log
  readonly people: People
  /** Called for rows without a valid event. They stay for an operator to inspect and block no others. */
  readonly onUnreadable: (rows: readonly UnreadableRow[]) => void
  /** Default: {@link HELD_MS_MAX}. */
  readonly heldMsMax?: number
}

export type UnreadableRow = { readonly id: string; readonly topic: string; readonly reason: string }

/** The result of a round. `full`: there may be more. `elsewhere`: another relay is at work. */
export type Round = { readonly relayed: number; readonly outcome: 'empty' | 'full' | 'done' | 'elsewhere' }

/**
 * Runs one round: reads the oldest rows, publishes them in the order of their ids and deletes them. Events of one row
 * of the write side keep their order, because ids are assigned while that row is locked: a later event is never visible
 * without the earlier ones. Lower ids may still appear; so only published rows are deleted, not all older ones.
 *
 * A crash at any point loses nothing: rows are deleted after the log has stored them. Rows that were published and not
 * deleted are published again, as the same messages with the same ids.
 */
export async function relayOnce(needs: RelayNeeds, unreadable: ReadonlySet<string>): Promise<Round> {
  const rows = await needs.outbox.readOldest(ROUND_ROWS_MAX, unreadable)
  if (rows.length === 0) return { relayed: 0, outcome: 'empty' }
  const { parcels, faults } = parcelsOf(rows)
  if (faults.length > 0) needs.onUnreadable(faults)
  const { isMine, relayed } = await sendAll(needs, parcels)
  if (!isMine) return { relayed: 0, outcome: 'elsewhere' }
  return { relayed, outcome: rows.length === ROUND_ROWS_MAX ? 'full' : 'done' }
}

/** Consecutive rows of one topic, appended together. */
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
    // The schema gives fields a fixed order, which jsonb does not: equal events are equal bytes.
    parcel.rows.push({ id, event: parsed.data })
  }
  return { parcels: [...parcels.values()], faults }
}

async function sendAll(needs: RelayNeeds, parcels: readonly Parcel[]): Promise<{ isMine: boolean; relayed: number }> {
  let relayed = 0
  for (const { topic, rows } of parcels) {
    const events = rows.map(({ event }) => event)
    // Persons are created and stored before events about them are in the log: the loader skips unknown people.
    const seals = await needs.people.seals(namesOf(topic, events))
    const sent = await send(needs, { topic, rows }, seals)
    if (sent === undefined) return { isMine: false, relayed }
    relayed += sent
  }
  return { isMine: true, relayed }
}

/** Returns the number of rows that the log has now, or undefined when another relay is at work. */
async function send(needs: RelayNeeds, { topic, rows }: Parcel, seals: Seals): Promise<number | undefined> {
  const claimed: { ids: readonly string[]; appending: Promise<void> } = { ids: [], appending: Promise.resolve() }
  const outcome = await needs.outbox.transaction(async (transaction) => {
    if (!(await transaction.lock())) return 'elsewhere'
    const ids = await transaction.readLeft(rows.map(({ id }) => id))
    const left = rows.filter(({ id }) => ids.has(id))
    const messages = left.flatMap(({ event }) => sealedEvent(topic, event, PROVENANCE, seals) ?? [])
    if (messages.length < left.length) needs.people.passedOver(topic.name, left.length - messages.length)
    claimed.ids = left.map(({ id }) => id)
    if (messages.length > 0) claimed.appending = needs.log.append(topic.name, messages)
    // Awaited below, unless PostgreSQL fails first.
    claimed.appending.catch(() => undefined)
    const isAppended = claimed.appending.then(() => true)
    if (!(await withTimeout(isAppended, needs.heldMsMax ?? HELD_MS_MAX, () => false))) return 'slow'
    await transaction.deleteRows(claimed.ids)
    return 'sent'
  })
  if (outcome === 'elsewhere') return undefined
  if (outcome === 'slow') {
    await claimed.appending
    await needs.outbox.deleteRows(claimed.ids)
  }
  return claimed.ids.length
}
