import { encodeEvent, type LogMessage, nameKey, type Provenance, type Topic } from '@gamenet/schemas'
import type { People, Seals } from './people.js'

/**
 * The messages of events in their order, those about people sealed. Events about an erased person are left
 * out and reported to `people`.
 */
export async function encodeEvents<Event>(
  topic: Topic<Event>,
  events: readonly Event[],
  provenance: Provenance,
  people: People | undefined
): Promise<LogMessage[]> {
  if (topic.people === undefined) return events.map((event) => encodeEvent(topic, event, provenance))
  if (people === undefined) throw new Error(`${topic.name} is about people, and whose seals these are was not given`)
  const seals = await people.seals(namesOf(topic, events))
  const messages = events.flatMap((event) => sealedEvent(topic, event, provenance, seals) ?? [])
  if (messages.length < events.length) people.passedOver(topic.name, events.length - messages.length)
  return messages
}

/** The subjects of these events, each once. */
export function namesOf<Event>(topic: Topic<Event>, events: readonly Event[]): ReadonlySet<string> {
  return new Set(events.flatMap((event) => topic.people?.(event) ?? []))
}

/** The message of an event about people; undefined when one of them has no seal. */
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
