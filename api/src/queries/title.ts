import { TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

/**
 * Selects the known facts of titles, a row per title and field: the newest before `to`, and for a field that has only
 * later ones, the newest of those, because a name of a clock that was ahead is better than none. A few thousand rows.
 * Events are read only for titles with later facts; the condition without columns is a constant.
 */
export const titleFacts = query({
  params: z.object({ to: z.int().nonnegative() }),
  row: z.object({ titleId: TitleId, field: z.string(), value: z.string() }),
  sql: `
    WITH (SELECT countIf(${isAhead('a')}) FROM {title: Identifier} AS a) AS ahead
    SELECT f.title_id AS titleId, f.field AS field, argMax(f.value, f.age) AS value
    FROM (
      SELECT t.title_id AS title_id, t.field AS field, t.value AS value,
        (NOT ${isAhead('t')}, t.version) AS age
      FROM {title: Identifier} AS t FINAL
      UNION ALL
      SELECT e.title_id AS title_id, f.1 AS field, assumeNotNull(f.2) AS value,
        (true, e.version) AS age
      FROM {event_title: Identifier} AS e
      ARRAY JOIN [
        ('name', toNullable(e.name)), ('title', e.title), ('publisher', e.publisher), ('release_date', e.release_date),
        ('image', e.image)] AS f
      WHERE ahead > 0
        AND f.2 IS NOT NULL
        AND NOT ${isAhead('e')}
        AND e.title_id IN (SELECT a.title_id FROM {title: Identifier} AS a WHERE ${isAhead('a')})
    ) AS f
    GROUP BY f.title_id, f.field`
})

/** A version begins with the instant of its event. */
function isAhead(alias: string): string {
  return `bitShiftRight(${alias}.version, 64) >= {to: UInt64}`
}
