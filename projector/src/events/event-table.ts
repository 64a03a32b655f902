import type { Topic } from '@gamenet/schemas'

/** The value of a column: JSON that ClickHouse parses exactly. */
export type Value = string | number | boolean | null | readonly (string | number)[]

/** The event table of a topic: its own columns, and the pure function from an event to their values. */
export type EventTable = {
  readonly topic: Topic
  /** `event_<noun>`. */
  readonly table: string
  /** {@link POSITION_COLUMNS}, then the topic's own. */
  readonly columns: readonly string[]
  /** Returns the topic's own values of one event, in the order of its columns. */
  values(event: unknown): readonly Value[]
}

/** The first columns of every event table. */
export const POSITION_COLUMNS = ['epoch', 'partition', 'offset', 'source', 'import_id', 'observed_at'] as const

/**
 * Binds a topic to the columns of its event table. Names and values are declared together, so that they cannot diverge.
 */
export function eventTable<Event>(
  topic: Topic<Event>,
  columns: Readonly<Record<string, (event: Event) => Value>>
): EventTable {
  const values = Object.values(columns)
  return {
    topic: topic as Topic,
    table: eventTableName(topic),
    columns: [...POSITION_COLUMNS, ...Object.keys(columns)],
    // The loader passes a value that the topic's schema has just parsed.
    values: (event) => values.map((value) => value(event as Event))
  }
}

/** Returns the name of a topic's event table. */
export function eventTableName(topic: Pick<Topic, 'name'>): string {
  return `event_${topic.name.replaceAll('-', '_')}`
}

/**
 * Returns a canonical instant as text for a `DateTime64(3, 'UTC')`. ClickHouse reads an unquoted `1234.500` as the year
 * 1234, and a number of seconds as a float would lose the millisecond.
 */
export function instantText(instant: string): string {
  return `${instant.slice(0, 10)} ${instant.slice(11, -1)}`
}
