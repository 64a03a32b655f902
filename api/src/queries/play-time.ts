import { z } from 'zod'
import { query } from './query.js'

const Ms = z.int().nonnegative()

/** What of a user is known from presence: each field by itself, with the instant of the sighting that said it. */
export const PRESENCE_FIELDS = ['username', 'seen', 'period', 'online', 'game', 'gamertag'] as const

/** A user's newest sightings, one row a field; see the table. */
export const presenceFacts = query({
  params: z.object({ userKey: z.string() }),
  row: z.object({ field: z.enum(PRESENCE_FIELDS), value: z.string(), valueKey: z.string(), atMs: Ms }),
  sql: `
    SELECT l.field AS field, l.value AS value, l.value_key AS valueKey, toFloat64(toUnixTimestamp64Milli(l.ts)) AS atMs
    FROM presence_latest AS l FINAL
    WHERE l.user_key = {userKey: String}`
})
