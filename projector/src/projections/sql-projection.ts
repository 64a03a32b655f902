import { eventTableName } from '../events/event-table.js'
import type { SqlProjection } from '../store/projection.js'

/** Columns of read tables whose values are not those of the event's column of the same name. */
const VALUES: Readonly<Record<string, string>> = { ts: 'e.observed_at', age: 'bitNot(e.position)' }

/** Returns a projection as one SQL statement into the table of its name. */
export function sqlProjection({ name, ...projection }: Omit<SqlProjection, 'into'>): SqlProjection {
  return { name, into: name.replaceAll('-', '_'), ...projection }
}

/** Returns a projection with one row per event. `values`: expressions of columns with another name in the event. */
export function rowPerEvent({
  values,
  ...projection
}: Omit<SqlProjection, 'into' | 'select'> & { readonly values?: Readonly<Record<string, string>> }): SqlProjection {
  const expressionOf = (column: string) => ({ ...VALUES, ...values })[column] ?? `e.${column}`
  const { from, columns } = projection
  return sqlProjection({
    ...projection,
    select: `
      SELECT ${columns.map(expressionOf).join(', ')}
      FROM {${eventTableName(from)}: Identifier} AS e
      WHERE {range}`
  })
}
