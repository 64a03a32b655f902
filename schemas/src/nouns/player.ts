import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'
import { LeaderboardId } from './leaderboard.js'
import { shownMeasure } from './shown-measure.js'

/** The answer of `suggestPlayers`. */
export const SuggestedPlayers = z
  .object({ results: z.array(z.string()), count: Count.describe('Number of names in `results`.') })
  .meta({ id: 'SuggestedPlayers', description: 'Names of players in alphabetical order of their folded form.' })
export type SuggestedPlayers = z.infer<typeof SuggestedPlayers>

/** The answer of `getPlayerUsers`. */
export const PlayerUsers = z
  .object({
    playerName: z.string().describe('As requested.'),
    users: z.array(
      z
        .object({ username: z.string(), gamertag: z.string().describe('As the user linked it.') })
        .meta({ id: 'PlayerUser' })
    )
  })
  .meta({ id: 'PlayerUsers', description: 'The users who have the gamertag, by name.' })
export type PlayerUsers = z.infer<typeof PlayerUsers>

/** A player's entry on a board, with its place there. */
export const PlayerBoard = z.object({
  leaderboardId: LeaderboardId,
  leaderboardName: z.string(),
  titleId: z.string(),
  gameName: z.string(),
  playerName: z.string(),
  rank: z.int(),
  entries: Count.describe('Number of entries of the complete board.'),
  percentile: z
    .number()
    .describe('Share of the board’s entries whose rank is no better, this one included, in percent, one decimal.'),
  ...shownMeasure,
  next: z
    .object({
      rank: z.int(),
      playerName: z.string(),
      ...shownMeasure,
      gap: z
        .number()
        .nullable()
        .describe('Milliseconds or points from this entry to that one; null if either is not a number.')
    })
    .nullable()
    .describe('The nearest entry of a better rank; null for a leader.'),
  observedAt: ShownInstant.describe('When this entry last changed.')
})

/** The answer of `getPlayer`. */
export const Player = z
  .object({
    playerName: z.string().describe('As requested.'),
    spellings: z.array(z.string()).describe('All spellings of the name on boards.'),
    total: Count.describe('Entries on all boards.'),
    boards: z.array(PlayerBoard)
  })
  .meta({ id: 'Player', description: 'The boards of a player, best rank first.' })
export type Player = z.infer<typeof Player>
