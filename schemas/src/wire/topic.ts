import type { z } from 'zod'

/** Turns the value of an event in an older schema version into that of the next version. Pure. */
export type Lift = (value: unknown) => unknown

/** A named part of the log: one noun, its schema, its ordering key and its instant, in one value. */
export type Topic<Event = unknown> = {
  /** Kebab-case noun; the log's topic, the event table `event_<noun>` and the `ce_type` derive from it. */
  readonly name: string
  /** The schema version that is written now. Older ones are lifted, newer ones become dead letters. */
  readonly version: number
  readonly event: z.ZodType<Event>
  /** Ordering key: events of one key keep their order. Of a topic about people, the first of these. */
  key(event: Event): string
  /** Distinguishes events of one instant; with the instant, it forms the event's id. Default: the key. */
  identity(event: Event): string
  /** When the fact held, canonical text ({@link Instant}). */
  instant(event: Event): string
  /**
   * The usernames that the event is about. Such an event travels sealed with the keys of these people, its message's key
   * and id name them by number alone, and `identity` must say nothing of them: when a key is thrown away, nothing that
   * can be read is left. Absent: the topic is about no people, and its events are plain.
   */
  people?(event: Event): readonly string[]
  /** `lifts[n]` turns a value of version n into one of version n + 1. */
  readonly lifts: Readonly<Record<number, Lift>>
}

type Definition<Event> = Pick<Topic<Event>, 'name' | 'event' | 'instant'> &
  Partial<Pick<Topic<Event>, 'version' | 'lifts'>>

/** Binds a noun to its schema. `version` is 1, `lifts` empty and `identity` the key unless given. */
export function topic<Event>(
  definition: Definition<Event> &
    (
      | (Pick<Topic<Event>, 'key'> & Partial<Pick<Topic<Event>, 'identity'>>)
      | (Required<Pick<Topic<Event>, 'people'>> & Pick<Topic<Event>, 'identity'>)
    )
): Topic<Event> {
  const key = 'people' in definition ? (event: Event) => definition.people(event)[0] ?? '' : definition.key
  return { version: 1, lifts: {}, identity: key, ...definition, key }
}
