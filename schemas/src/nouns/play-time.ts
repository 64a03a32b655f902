import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'

const At = ShownInstant.nullable()

/** Play time and presence of a user, in the answer of `getProfile`. */
export const PlayTime = z
  .object({
    totalMinutes: Count.meta({ description: 'Whole seconds in games summed, then floored to minutes.' }),
    lastState: z.enum(['online', 'offline']).meta({
      description:
        '`offline` also if the user was never seen, or if the newest sighting online is older than three of its own ' +
        'periods.'
    }),
    currentGame: z.string().nullable().meta({ description: 'null when offline or in no game.' }),
    lastPlayedGame: z.string().nullable(),
    lastPlayedAt: At.meta({ description: 'Newest sighting in a game.' }),
    lastOnlineAt: At.meta({ description: 'Newest sighting online.' }),
    lastCheckTs: At.meta({
      description: 'When the user was last checked: the newest sighting, or the newest complete scrape.'
    }),
    daysSeen: Count.meta({ description: 'UTC days with a sighting online.' })
  })
  .meta({ id: 'PlayTime' })
export type PlayTime = z.infer<typeof PlayTime>

/** The answer of `getPlayTime`. */
export const DailyPlayTime = z
  .object({
    username: z.string(),
    totalMinutes: Count.meta({ description: 'Of all days listed: whole seconds summed, then floored.' }),
    daysSeen: Count.meta({ description: 'Days listed with a sighting online.' }),
    days: z.array(
      z.object({
        date: z.iso.date().meta({ description: 'UTC.' }),
        totalMinutes: Count,
        isSeen: z.boolean().meta({ description: 'Whether there was a sighting online.' }),
        games: z
          .array(
            z.object({
              gameName: z.string(),
              titleId: z.string().nullable(),
              totalMinutes: Count,
              seconds: Count
            })
          )
          .meta({ description: 'Longest played first.' })
      })
    )
  })
  .meta({
    id: 'DailyPlayTime',
    description: 'Days on which the user was seen or played, oldest first; others have no row.'
  })
export type DailyPlayTime = z.infer<typeof DailyPlayTime>
