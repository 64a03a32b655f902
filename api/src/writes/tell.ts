import { CHANGED_CHANNEL, nameKey, type Topic, type WriteChange } from '@gamenet/schemas'
import type { WriteSide } from '../write-side.js'

/**
 * Puts the event of a change into the outbox and tells everybody who listens, both when the transaction is committed.
 * Throws for an event that does not match its schema: nobody could relay it.
 */
export async function tell<Event>(
  transaction: WriteSide,
  topic: Topic<Event>,
  event: Event,
  change: WriteChange
): Promise<void> {
  const parsed = topic.event.parse(event)
  const people = topic.people?.(parsed).map(nameKey) ?? []
  await transaction.query(TELL, [topic.name, people, JSON.stringify(parsed), CHANGED_CHANNEL, JSON.stringify(change)])
}

const TELL = `
  WITH told AS (INSERT INTO outbox (topic, people, event) VALUES ($1, $2::text[], $3::text::jsonb))
  SELECT pg_notify($4, $5)`
