import type { UserScores } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about the entries of users on boards. */
export function userScoreMethods(get: Get) {
  return {
    /** Returns a user's best entries on boards, best rank first; `limit` 1 to 50 (10). */
    getUserScores: (
      parameters: { readonly username: string; readonly limit?: number | undefined },
      call?: CallOptions
    ) => get<UserScores>('/api/profile/:username/leaderboard-scores', parameters, call)
  }
}
