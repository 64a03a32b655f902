import type { Topic } from '@gamenet/schemas'

/** What a column takes: JSON values that ClickHouse reads exactly. */
export type Value = string | number | boolean | null | readonly (string | number)[]

/** Where the events of a topic are stored: the columns that are its own, and the pure way from an event to them. */
export type EventTable = {
  readonly topic: Topic
  /** `event_<noun>`. */
  readonly table: string
  /** {@link POSITION_COLUMNS}, then the topic's own. */
  readonly columns: readonly string[]
  /** The topic's own values of one event, in the order of its columns. */
  values(event: unknown): readonly Value[]
}

/** What every event table begins with. */
export const POSITION_COLUMNS = ['epoch', 'partition', 'offset', 'source', 'import_id', 'observed_at'] as const

/** Binds a topic to the columns of its event table; names and values stand side by side so that they cannot drift. */
export function eventTable<Event>(
  topic: Topic<Event>,
  columns: Readonly<Record<string, (event: Event) => Value>>
): EventTable {
  const values = Object.values(columns)
  return {
    topic: topic as Topic,
    table: eventTableName(topic),
    columns: [...POSITION_COLUMNS, ...Object.keys(columns)],
    // The loader passes what the topic's own schema has just parsed.
    values: (event) => values.map((value) => value(event as Event))
  }
}

/** The name of a topic's event table. */
export function eventTableName(topic: Pick<Topic, 'name'>): string {
  return `event_${topic.name.replaceAll('-', '_')}`
}

/**
 * A canonical instant as text for a `DateTime64(3, 'UTC')`. Text, because ClickHouse reads an unquoted `1234.500` as the
 * year 1234, and a number of seconds as a float would lose the millisecond.
 */
export function instantText(instant: string): string {
  return `${instant.slice(0, 10)} ${instant.slice(11, -1)}`
}
