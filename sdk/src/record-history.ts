import type { LeaderboardRecords, RecentRecords } from './answers.js'
import type { OfBoard } from './leaderboard.js'
import type { CallOptions, Get } from './request.js'
import type { Known } from './window.js'

type Page = { readonly limit?: number | undefined; readonly offset?: number | undefined }

/** Methods about records. */
export function recordHistoryMethods(get: Get) {
  return {
    /**
     * Returns the holders of a board's record with their periods, oldest first; `limit` 1 to 10000 (all), `offset` from
     * 0.
     */
    getLeaderboardRecords: (
      parameters: OfBoard & Page & Known & { readonly tz?: string | undefined },
      call?: CallOptions
    ) => get<LeaderboardRecords>('/api/game/:game/leaderboards/:leaderboardId/records', parameters, call),

    /** Returns records newly set on any board, newest first; `limit` 1 to 500 (50), `offset` 0 to 10000. */
    getRecentRecords: (
      parameters: Page & {
        readonly game?: string | undefined
        readonly player?: string | undefined
        readonly contested?: boolean | undefined
      } = {},
      call?: CallOptions
    ) => get<RecentRecords>('/api/records/recent', parameters, call)
  }
}
