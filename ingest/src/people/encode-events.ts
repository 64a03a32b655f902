import { encodeEvent, type LogMessage, nameKey, type Provenance, type Topic } from '@gamenet/schemas'
import type { People, Seals } from './people.js'

/**
 * Encodes events in order and seals those about people. Events about an erased person are left out and reported to
 * `people`.
 */
export async function encodeEvents<Event>(
  topic: Topic<Event>,
  events: readonly Event[],
  provenance: Provenance,
  people: People | undefined
): Promise<LogMessage[]> {
  if (topic.people === undefined) return events.map((event) => encodeEvent(topic, event, provenance))
  if (people === undefined) throw new Error(`${topic.name} is about people, but no seals were given`)
  const seals = await people.seals(namesOf(topic, events))
  const messages = events.flatMap((event) => sealedEvent(topic, event, provenance, seals) ?? [])
  if (messages.length < events.length) people.passedOver(topic.name, events.length - messages.length)
  return messages
}

/** Returns the distinct subjects of these events. */
export function namesOf<Event>(topic: Topic<Event>, events: readonly Event[]): ReadonlySet<string> {
  return new Set(events.flatMap((event) => topic.people?.(event) ?? []))
}

/** Encodes an event about people; undefined if one of them has no seal. */
export function sealedEvent<Event>(
  topic: Topic<Event>,
  event: Event,
  provenance: Provenance,
  seals: Seals
): LogMessage | undefined {
  const names = topic.people?.(event) ?? []
  const own = names.flatMap((name) => seals.get(nameKey(name)) ?? [])
  return own.length === names.length ? encodeEvent(topic, event, provenance, own) : undefined
}
