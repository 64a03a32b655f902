import { z } from 'zod'
import { Count } from './count.js'
import { LeaderboardId } from './leaderboard.js'

/** Score or time of an entry: fields of answers. */
export const shownMeasure = {
  rating: z.string().meta({ description: 'The raw text that the board shows.' }),
  timeMs: Count.meta({ description: 'Milliseconds; 0 for a score.' }),
  timeFormatted: z.string().meta({ description: '`M:SS.mmm`; "" for a score.' }),
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
