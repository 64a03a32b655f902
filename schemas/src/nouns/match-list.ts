import { z } from 'zod'
import { Instant, RecordedAt, ShownInstant } from '../values/instant.js'
import { TitleId } from '../values/title-id.js'
import { topic } from '../wire/topic.js'
import { Count } from './count.js'

/** A lobby as a list shows it. */
export const Lobby = z.object({
  hostName: z.string().max(500),
  currentPlayers: Count,
  /** 0 when unknown. */
  maxPlayers: Count
})
export type Lobby = z.infer<typeof Lobby>

/** The lobbies of one title at one instant; an empty list means that there were none. */
export const MatchesListed = z.object({
  titleId: TitleId,
  observedAt: Instant,
  matches: z.array(Lobby).max(100_000)
})
export type MatchesListed = z.infer<typeof MatchesListed>

export const matchListTopic = topic({
  name: 'match-list',
  event: MatchesListed,
  key: (event) => event.titleId,
  instant: (event) => event.observedAt
})

/** The answer of `getMatches`. */
export const Matches = z
  .object({
    titleId: z.string(),
    gameName: z.string(),
    matches: z.array(Lobby.extend({ timestamp: RecordedAt.describe('Instant of the list.') }).meta({ id: 'OpenMatch' }))
  })
  .meta({ id: 'Matches', description: 'The lobbies of the newest list.' })
export type Matches = z.infer<typeof Matches>

/** The answer of `getMatchHistory`. */
export const MatchHistory = z
  .array(
    z
      .object({
        hostName: z.string(),
        firstSeen: ShownInstant,
        lastSeen: ShownInstant,
        durationMinutes: z.number().describe('From first to last sight, one decimal.'),
        peakPlayers: Count,
        maxPlayers: Count.describe('0 when unknown.'),
        isOpen: z.boolean().describe('Whether the newest list still has it.')
      })
      .meta({ id: 'Match' })
  )
  .meta({ id: 'MatchHistory', description: 'Matches, newest first.' })
export type MatchHistory = z.infer<typeof MatchHistory>

/** The answer of `getMatchStats`. */
export const MatchStats = z
  .object({
    titleId: z.string(),
    gameName: z.string(),
    currentMatches: Count,
    currentPlayers: z.int().nonnegative(),
    matches24h: Count,
    matches7d: Count,
    matches30d: Count,
    peakConcurrentMatches: Count,
    peakConcurrentMatchesAt: ShownInstant.nullable(),
    averageDurationMinutes: z.number().describe('Mean over the matches, one decimal.'),
    averagePlayers: z.number().describe('Mean players of a lobby of a list, one decimal.'),
    busiestHourUtc: z
      .int()
      .min(0)
      .max(23)
      .nullable()
      .describe('Hour of the day with the highest mean of players; null if `hoursWithLists` is below 24.'),
    hoursWithLists: z.int().describe('Hours of the 30 days with a list; 0: nothing was counted.'),
    topHosts: z.array(z.object({ hostName: z.string(), matches: Count }))
  })
  .meta({ id: 'MatchStats', description: 'The last 30 days of the title’s matches.' })
export type MatchStats = z.infer<typeof MatchStats>
