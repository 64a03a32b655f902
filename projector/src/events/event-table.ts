import type { Topic } from '@gamenet/schemas'
import type { ColumnType, Value } from '../rows/columns.js'
import type { ColumnTypes } from '../rows/row-writer.js'

/** The event table of a topic: its own columns, and the pure function from an event to their values. */
export type EventTable = {
  readonly topic: Topic
  /** `event_<noun>`. */
  readonly table: string
  /** {@link POSITION_TYPES}, then the topic's own. */
  readonly types: ColumnTypes
  /** The names of the columns. */
  readonly columns: readonly string[]
  /** Returns the topic's own values of one event, in the order of its columns. */
  values(event: unknown): readonly Value[]
}

/** The first columns of every event table. */
export const POSITION_TYPES = {
  epoch: 'UInt16',
  partition: 'UInt16',
  offset: 'UInt64',
  source: 'LowCardinality(String)',
  import_id: 'LowCardinality(String)',
  observed_at: `DateTime64(3, 'UTC')`,
  recorded_at: `DateTime64(3, 'UTC')`
} as const satisfies ColumnTypes

/**
 * Binds a topic to the columns of its event table. Names, types and values are declared together, so that they cannot
 * diverge.
 */
export function eventTable<Event>(
  topic: Topic<Event>,
  columns: Readonly<Record<string, readonly [type: ColumnType, value: (event: Event) => Value]>>
): EventTable {
  const values = Object.values(columns).map(([, value]) => value)
  const own = Object.fromEntries(Object.entries(columns).map(([name, [type]]) => [name, type]))
  const types: ColumnTypes = { ...POSITION_TYPES, ...own }
  return {
    topic: topic as Topic,
    table: eventTableName(topic),
    types,
    columns: Object.keys(types),
    // The loader passes a value that the topic's schema has just parsed.
    values: (event) => values.map((value) => value(event as Event))
  }
}

/** Returns the name of a topic's event table. */
export const eventTableName = (topic: Pick<Topic, 'name'>): string => `event_${topic.name.replaceAll('-', '_')}`
