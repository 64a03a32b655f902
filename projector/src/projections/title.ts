import { titleTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { sqlProjection } from './sql-projection.js'

/** One row per title and field that a source knew: per field the newest instant wins. */
export const title = sqlProjection({
  name: 'title',
  from: titleTopic,
  columns: ['title_id', 'field', 'value', 'name_key', 'version'],
  select: `
    SELECT e.title_id, f.1, assumeNotNull(f.2), if(f.1 = 'name', e.name_key, ''), e.version
    FROM {event_title: Identifier} AS e
    ARRAY JOIN [
      ('name', toNullable(e.name)), ('title', e.title), ('publisher', e.publisher), ('release_date', e.release_date),
      ('image', e.image), ('product_code', e.product_code), ('features', e.features)] AS f
    WHERE {range} AND f.2 IS NOT NULL`,
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
})
