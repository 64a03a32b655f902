import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'

const At = ShownInstant.nullable()

/** Play time and presence of a user, in the answer of `getProfile`. */
export const PlayTime = z
  .object({
    totalMinutes: Count.describe('Whole seconds in games summed, then floored to minutes.'),
    lastState: z
      .enum(['online', 'offline'])
      .describe(
        '`offline` also if the user was never seen, or if the newest sighting online is older than three of its own ' +
          'periods.'
      ),
    currentGame: z.string().nullable().describe('null when offline or in no game.'),
    lastPlayedGame: z.string().nullable(),
    lastPlayedAt: At.describe('Newest sighting in a game.'),
    lastOnlineAt: At.describe('Newest sighting online.'),
    lastCheckTs: At.describe('When the user was last checked: the newest sighting, or the newest complete scrape.'),
    daysSeen: Count.describe('UTC days with a sighting online.')
  })
  .meta({ id: 'PlayTime' })
export type PlayTime = z.infer<typeof PlayTime>

/** The answer of `getPlayTime`. */
export const DailyPlayTime = z
  .object({
    username: z.string(),
    totalMinutes: Count.describe('Of all days listed: whole seconds summed, then floored.'),
    daysSeen: Count.describe('Days listed with a sighting online.'),
    days: z.array(
      z.object({
        date: z.iso.date().describe('UTC.'),
        totalMinutes: Count,
        isSeen: z.boolean().describe('Whether there was a sighting online.'),
        games: z
          .array(
            z.object({
              gameName: z.string(),
              titleId: z.string().nullable(),
              totalMinutes: Count,
              seconds: Count
            })
          )
          .describe('Longest played first.')
      })
    )
  })
  .meta({
    id: 'DailyPlayTime',
    description: 'Days on which the user was seen or played, oldest first; others have no row.'
  })
export type DailyPlayTime = z.infer<typeof DailyPlayTime>
