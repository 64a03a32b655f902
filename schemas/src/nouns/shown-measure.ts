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

/** Board and name of an entry: fields of answers. */
export const shownPlace = {
  titleId: z.string(),
  gameName: z.string(),
  leaderboardId: LeaderboardId,
  leaderboardName: z.string(),
  playerName: z.string()
}
