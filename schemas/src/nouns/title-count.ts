import { z } from 'zod'
import { Instant, RecordedAt, ShownInstant } from '../values/instant.js'
import { TitleId } from '../values/title-id.js'
import { topic } from '../wire/topic.js'
import { bucketStatistics, Count } from './count.js'

/** The players of one title at one instant, as counted by its source. */
export const TitleCounted = z.object({
  titleId: TitleId,
  observedAt: Instant,
  online: Count,
  /** Lobbies open. */
  sessions: Count.optional(),
  /** Players in lobbies. */
  lobbyPlayers: Count.optional()
})
export type TitleCounted = z.infer<typeof TitleCounted>

export const titleCountTopic = topic({
  name: 'title-count',
  event: TitleCounted,
  key: (event) => event.titleId,
  instant: (event) => event.observedAt
})

/** The answer of `getOnlineUsers`. */
export const OnlineUsers = z
  .record(
    z.string(),
    z
      .object({
        name: z.string(),
        online: Count,
        titleId: z.string(),
        image: z.string().describe('Absolute address, "" when unknown.'),
        publisher: z.string(),
        activeLobbies: Count,
        sessionCount: Count,
        activeLobbyPlayers: Count,
        hasActiveSession: z.boolean(),
        lobbyHostNames: z.array(z.string())
      })
      .meta({ id: 'OnlineTitle' })
  )
  .meta({ id: 'OnlineUsers', description: 'Games by name.' })
export type OnlineUsers = z.infer<typeof OnlineUsers>

/** The answer of `getTitleOnlineHistory`. */
export const TitleOnlineHistory = z
  .array(
    z.object({ recorded_at: RecordedAt, online_count: Count, ...bucketStatistics }).meta({ id: 'TitleOnlinePoint' })
  )
  .meta({ id: 'TitleOnlineHistory', description: 'Players of the title, oldest first.' })
export type TitleOnlineHistory = z.infer<typeof TitleOnlineHistory>

/** The answer of `getTopGames`. */
export const TopGames = z
  .array(
    z
      .object({
        titleId: z.string(),
        name: z.string(),
        peak: Count,
        peakAt: ShownInstant.describe('First instant of the peak.'),
        average: z.number().describe('Mean of the samples, one decimal.'),
        samples: z.int().describe('Number of samples.'),
        activeHours: z.int().describe('UTC hours with a sample above 0.')
      })
      .meta({ id: 'TopGame' })
  )
  .meta({ id: 'TopGames', description: 'Games by peak, highest first.' })
export type TopGames = z.infer<typeof TopGames>
