import { TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

/** Selects all known facts of titles, a row per title and field; a few thousand rows. */
export const titleFacts = query({
  params: z.object({}),
  row: z.object({ titleId: TitleId, field: z.string(), value: z.string(), nameKey: z.string() }),
  sql: `
    SELECT t.title_id AS titleId, t.field AS field, t.value AS value, t.name_key AS nameKey
    FROM {title: Identifier} AS t FINAL`
})
