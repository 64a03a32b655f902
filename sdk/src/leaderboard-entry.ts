import type { Leaderboard, LeaderboardComparison } from './answers.js'
import type { OfBoard } from './leaderboard.js'
import type { CallOptions, Get } from './request.js'
import type { Known } from './window.js'

/** Methods about the entries of a board. */
export function leaderboardEntryMethods(get: Get) {
  return {
    /** Returns a board, now or `asOf` an instant; `limit` 1 to 10000 (all), `offset` from 0. */
    getLeaderboard: (
      parameters: OfBoard &
        Known & {
          readonly limit?: number | undefined
          readonly offset?: number | undefined
          readonly asOf?: Date | string | undefined
          readonly tz?: string | undefined
        },
      call?: CallOptions
    ) => get<Leaderboard>('/api/game/:game/leaderboards/:leaderboardId', parameters, call),

    /**
     * Returns the entries that came, left, rose, fell or improved between `from` and `to` (now); `limit` 1 to 10000
     * (1000) a list.
     */
    compareLeaderboard: (
      parameters: OfBoard & {
        readonly from: Date | string
        readonly to?: Date | string | undefined
        readonly tz?: string | undefined
        readonly limit?: number | undefined
      },
      call?: CallOptions
    ) => get<LeaderboardComparison>('/api/game/:game/leaderboards/:leaderboardId/compare', parameters, call)
  }
}
