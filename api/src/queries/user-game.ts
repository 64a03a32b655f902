import { TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

const Ms = z.int().nonnegative()
const OfUser = z.object({ userKey: z.string() })

/** Selects the whole seconds that a user played, by the game's exact name. */
export const playedSeconds = query({
  params: OfUser,
  row: z.object({ game: z.string(), seconds: z.int() }),
  sql: `
    SELECT g.1 AS game, toFloat64(sum(g.2)) AS seconds
    FROM {presence_day: Identifier} AS d FINAL
    ARRAY JOIN CAST(d.seconds, 'Array(Tuple(String, UInt32))') AS g
    WHERE d.user_key = {userKey: String}
    GROUP BY game`
})

/**
 * Selects when a user was last seen in each game, by its exact name. Of two sightings of one instant the later event
 * counts.
 */
export const lastSightings = query({
  params: OfUser,
  row: z.object({ game: z.string(), lastMs: Ms }),
  sql: `
    SELECT toString(p.game) AS game, toFloat64(toUnixTimestamp64Milli(max(p.ts))) AS lastMs
    FROM {presence: Identifier} AS p FINAL
    WHERE p.user_key = {userKey: String} AND p.is_online AND p.game != ''
    GROUP BY p.game`
})

/** Selects the titles with a board of a player, and when an entry there last changed. */
export const boardTitles = query({
  params: z.object({ playerKey: z.string() }),
  row: z.object({ titleId: TitleId, changedMs: Ms }),
  sql: `
    SELECT e.title_id AS titleId, toFloat64(toUnixTimestamp64Milli(max(e.ts))) AS changedMs
    FROM {player_entry: Identifier} AS e FINAL
    WHERE e.player_key = {playerKey: String} AND NOT e.is_gone
    GROUP BY e.title_id`
})
