import type { LeaderboardChange, LeaderboardChanges } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about the changes of boards. */
export function leaderboardChangeMethods(get: Get) {
  return {
    /**
     * Returns changes of entries, newest first, `limit` 1 to 500 (50), `offset` 0 to 10000; or with `after` (`start`,
     * or a cursor of the answer's `Link` header) in the order of recording. `leaderboardId` needs `game`.
     */
    getLeaderboardChanges: (
      parameters: {
        readonly limit?: number | undefined
        readonly offset?: number | undefined
        readonly after?: string | undefined
        readonly game?: string | undefined
        readonly leaderboardId?: number | undefined
        readonly player?: string | undefined
        readonly changeType?: LeaderboardChange['changeType'] | undefined
        readonly since?: Date | string | undefined
        readonly until?: Date | string | undefined
        readonly tz?: string | undefined
      } = {},
      call?: CallOptions
    ) => get<LeaderboardChanges>('/api/leaderboard-changes', parameters, call)
  }
}
