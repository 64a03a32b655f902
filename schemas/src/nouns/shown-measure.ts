import { z } from 'zod'
import { Count } from './count.js'
import { LeaderboardId } from './leaderboard.js'

/** Score or time of an entry: fields of answers. */
export const shownMeasure = {
  rating: z.string().describe('The raw text that the board shows.'),
  timeMs: Count.describe('Milliseconds; 0 for a score.'),
  timeFormatted: z.string().describe('`M:SS.mmm`; "" for a score.'),
  isTime: z.boolean()
}

/** A board: the first fields of answers about one. */
export const shownBoard = {
  titleId: z.string(),
  gameName: z.string(),
  leaderboardId: z.string(),
  name: z.string().describe('"" when only entries of the board are known.'),
  listed: z.boolean().describe('Whether the game still lists the board.')
}

/** Board and name of an entry: fields of answers. */
export const shownPlace = {
  titleId: z.string(),
  gameName: z.string(),
  leaderboardId: LeaderboardId,
  leaderboardName: z.string(),
  playerName: z.string()
}
