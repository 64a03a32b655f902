import { eventTables } from '../events/event-tables.js'
import { projections } from '../projections/projections.js'
import { type Projection, tablesOf } from './projection.js'

/**
 * A projection of a stored definition, whose statements name tables by `{name: Identifier}`. Earlier programs stored bare names,
 * and what they stored may serve still.
 */
export function withIdentifiers(projection: Projection): Projection {
  const known = new Set([...eventTables.map(({ table }) => table), ...[...projections, projection].flatMap(tablesOf)])
  const lifted = (_key: string, value: unknown) =>
    typeof value !== 'string'
      ? value
      : value.replaceAll(/\b(FROM|JOIN) ([a-z_]\w*)\b/g, (whole, word: string, table: string) =>
          known.has(table) ? `${word} {${table}: Identifier}` : whole
        )
  const { from, ...rest } = projection
  return { ...JSON.parse(JSON.stringify(rest, lifted)), from }
}
