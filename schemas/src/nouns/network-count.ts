import { z } from 'zod'
import { Instant, RecordedAt, ShownInstant } from '../values/instant.js'
import { topic } from '../wire/topic.js'
import { bucketStatistics, Count } from './count.js'

/** The counts of the whole network at one instant. A count that the source lacks is absent. */
export const NetworkCounted = z
  .object({
    observedAt: Instant,
    registered: Count.optional(),
    online: Count.optional(),
    lobbies: Count.optional()
  })
  .refine((event) => event.registered !== undefined || event.online !== undefined || event.lobbies !== undefined, {
    message: 'expected at least one of registered, online, lobbies'
  })
export type NetworkCounted = z.infer<typeof NetworkCounted>

export const networkCountTopic = topic({
  name: 'network-count',
  event: NetworkCounted,
  key: () => 'network',
  instant: (event) => event.observedAt
})

const Day = z.iso.date().meta({ description: 'UTC day, `YYYY-MM-DD`', example: '2026-03-14' })

/** The answer of `getRegisteredUsers`. */
export const RegisteredUsers = z
  .array(z.object({ date: Day, registered_count: Count }).meta({ id: 'RegisteredUsersDay' }))
  .meta({ id: 'RegisteredUsers', description: 'One point per UTC day that has a count, oldest first.' })
export type RegisteredUsers = z.infer<typeof RegisteredUsers>

/** The answer of `getOnlineHistory`. */
export const OnlineHistory = z
  .array(z.object({ recorded_at: RecordedAt, online_count: Count, ...bucketStatistics }).meta({ id: 'OnlinePoint' }))
  .meta({ id: 'OnlineHistory', description: 'Users online on the whole network, oldest first.' })
export type OnlineHistory = z.infer<typeof OnlineHistory>

/** The answer of `getLobbyHistory`. */
export const LobbyHistory = z
  .array(z.object({ recorded_at: RecordedAt, lobby_count: Count, ...bucketStatistics }).meta({ id: 'LobbyPoint' }))
  .meta({ id: 'LobbyHistory', description: 'Open lobbies of all games, oldest first.' })
export type LobbyHistory = z.infer<typeof LobbyHistory>

/** The answer of `getActivitySummary`. */
export const ActivitySummary = z
  .object({
    period: z.enum(['today', '7d']),
    peakOnline: Count,
    peakOnlineAt: ShownInstant.nullable(),
    peakLobbies: Count,
    peakLobbiesAt: ShownInstant.nullable(),
    mostPlayedGame: z
      .object({ name: z.string(), titleId: z.string(), peak: Count })
      .nullable()
      .describe('null if no game has a count above 0.'),
    onlineSampleCount: z.int().describe('Counts of users online; 0: `peakOnline` 0 was not counted.'),
    lobbySampleCount: z.int().describe('Counts of lobbies; 0: `peakLobbies` 0 was not counted.'),
    gamesWithActivityCount: z.int().describe('Titles with a count above 0.'),
    totalSnapshotCount: z.int().describe('Instants with a count of the network.')
  })
  .meta({ id: 'ActivitySummary', description: 'The peaks of the period.' })
export type ActivitySummary = z.infer<typeof ActivitySummary>

/** The answer of `getDailyOnline`. */
export const DailyOnline = z
  .array(
    z
      .object({
        date: Day,
        min_online: Count,
        max_online: Count,
        avg_online: z.number().describe('Mean of the samples, one decimal.'),
        samples: z.int(),
        coverage: z.number().min(0).max(1).describe('Share of the hours with a sample, 3 decimals.')
      })
      .meta({ id: 'OnlineDay' })
  )
  .meta({ id: 'DailyOnline', description: 'One row per UTC day that has a sample, oldest first.' })
export type DailyOnline = z.infer<typeof DailyOnline>
