import type { z } from 'zod'

/** A named part of the log: noun, schema, ordering key and instant in one value. */
export type Topic<Event = unknown> = {
  /** Kebab-case noun; the log's topic, the event table `event_<noun>` and the `ce_type` derive from it. */
  readonly name: string
  /** The schema version of new events. The schema reads older ones too; newer ones become dead letters. */
  readonly version: number
  readonly event: z.ZodType<Event>
  /** Ordering key: events with the same key keep their order. For a topic about people, the first of them. */
  key(event: Event): string
  /** Distinguishes events of one instant; with the instant, it forms the event's id. Default: the key. */
  identity(event: Event): string
  /** When the fact was true, canonical text ({@link Instant}). */
  instant(event: Event): string
  /**
   * The usernames of the event's subjects. Such an event is sealed with their keys; its message's key and id contain
   * only their numbers, and `identity` must not reveal them: after a key is deleted, nothing readable remains. Absent:
   * the topic is about no people, and its events are plain.
   */
  people?(event: Event): readonly string[]
}

type Definition<Event> = Pick<Topic<Event>, 'name' | 'event' | 'instant'> & Partial<Pick<Topic<Event>, 'version'>>

/** Binds a noun to its schema. Defaults: `version` 1, the key as `identity`. */
export function topic<Event>(
  definition: Definition<Event> &
    (
      | (Pick<Topic<Event>, 'key'> & Partial<Pick<Topic<Event>, 'identity'>>)
      | (Required<Pick<Topic<Event>, 'people'>> & Pick<Topic<Event>, 'identity'>)
    )
): Topic<Event> {
  const key = 'people' in definition ? (event: Event) => definition.people(event)[0] ?? '' : definition.key
  return { version: 1, identity: key, ...definition, key }
}
