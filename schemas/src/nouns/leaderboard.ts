import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { TitleId } from '../values/title-id.js'
import { topic } from '../wire/topic.js'
import { Count } from './count.js'

/** A board's number; it is unique within its title only. */
export const LeaderboardId = z.int().min(0).max(4_294_967_295)

/** A board as its title's list showed it at one instant. */
export const LeaderboardDescribed = z.object({
  titleId: TitleId,
  leaderboardId: LeaderboardId,
  /** As upstream shows it; two boards of a title may share one. */
  name: z.string().max(500),
  /** False when the list no longer has the board; absent means true. */
  listed: z.boolean().optional(),
  observedAt: Instant
})
export type LeaderboardDescribed = z.infer<typeof LeaderboardDescribed>

export const leaderboardTopic = topic({
  name: 'leaderboard',
  event: LeaderboardDescribed,
  key: (event) => boardKey(event),
  instant: (event) => event.observedAt
})

/** Returns the ordering key of a board's events, which also identifies the board in its change notifications. */
export function boardKey({ titleId, leaderboardId }: { titleId: string; leaderboardId: number }): string {
  return `${titleId}/${leaderboardId}`
}

/** The answer of `getLeaderboardSummary`. */
export const LeaderboardSummary = z
  .object({
    titleId: z.string(),
    gameName: z.string(),
    leaderboard_count: Count,
    total_entries: Count,
    time_entries: Count,
    score_entries: Count
  })
  .meta({ id: 'LeaderboardSummary', description: 'The boards that are listed now, counted.' })
export type LeaderboardSummary = z.infer<typeof LeaderboardSummary>

/** The answer of `getLeaderboards`. */
export const Leaderboards = z
  .array(
    z
      .object({ id: LeaderboardId, name: z.string(), titleId: z.string(), gameName: z.string() })
      .meta({ id: 'ListedLeaderboard' })
  )
  .meta({ id: 'Leaderboards', description: 'The boards that are listed now, by id.' })
export type Leaderboards = z.infer<typeof Leaderboards>
