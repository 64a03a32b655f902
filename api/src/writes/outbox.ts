import { CHANGED_CHANNEL, nameKey, type Topic, type WriteChange, type WriteSide } from '@gamenet/schemas'

/**
 * Writes the event of a change to the outbox and notifies all listeners; both take effect at commit.
 * Throws for an event that does not match its schema, since the relay could not publish it.
 */
export async function addToOutbox<Event>(
  transaction: WriteSide,
  topic: Topic<Event>,
  event: Event,
  change: WriteChange
): Promise<void> {
  const parsed = topic.event.parse(event)
  const people = topic.people?.(parsed).map(nameKey) ?? []
  await transaction.query(ADD, [topic.name, people, JSON.stringify(parsed), CHANGED_CHANNEL, JSON.stringify(change)])
}

const ADD = `
  WITH added AS (INSERT INTO outbox (topic, people, event) VALUES ($1, $2::text[], $3::text::jsonb))
  SELECT pg_notify($4, $5)`
