import type {
  AchievementCatalog,
  AchievementHolders,
  AchievementLeaderboard,
  RecentUnlocks,
  UserAchievements
} from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about achievements. */
export function achievementMethods(get: Get) {
  return {
    /** Returns all achievements, with the number of users who have each. */
    getAchievements: (call?: CallOptions) => get<AchievementCatalog>('/api/achievements', {}, call),

    /** Returns the users who have an achievement, newest unlock first; `limit` 1 to 500 (50). */
    getAchievementHolders: (
      parameters: {
        readonly achievementKey: string
        readonly limit?: number | undefined
        readonly offset?: number | undefined
      },
      call?: CallOptions
    ) => get<AchievementHolders>('/api/achievements/:achievementKey/holders', parameters, call),

    /** Returns the unlocked achievements of a user, newest first, and the locked ones. */
    getUserAchievements: (parameters: { readonly username: string }, call?: CallOptions) =>
      get<UserAchievements>('/api/profile/:username/achievements', parameters, call),

    /** Returns the highest scores; `limit` 1 to 100 (25). */
    getAchievementLeaderboard: (parameters: { readonly limit?: number | undefined } = {}, call?: CallOptions) =>
      get<AchievementLeaderboard>('/api/achievements/leaderboard', parameters, call),

    /** Returns the newest unlocks of all users, newest first; `limit` 1 to 100 (10). */
    getRecentUnlocks: (parameters: { readonly limit?: number | undefined } = {}, call?: CallOptions) =>
      get<RecentUnlocks>('/api/achievements/recent', parameters, call)
  }
}
