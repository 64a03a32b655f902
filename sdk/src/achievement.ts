import type { AchievementCatalog, AchievementLeaderboard, RecentUnlocks, UserAchievements } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about achievements. */
export function achievementMethods(get: Get) {
  return {
    /** Every achievement there is, and how many users have it. */
    getAchievements: (call?: CallOptions) => get<AchievementCatalog>('/api/achievements', {}, call),

    /** What a user has unlocked, newest first, and what not yet. */
    getUserAchievements: (parameters: { readonly username: string }, call?: CallOptions) =>
      get<UserAchievements>('/api/profile/:username/achievements', parameters, call),

    /** The highest scores; `limit` 1 to 100 (25). */
    getAchievementLeaderboard: (parameters: { readonly limit?: number | undefined } = {}, call?: CallOptions) =>
      get<AchievementLeaderboard>('/api/achievements/leaderboard', parameters, call),

    /** The newest unlocks of all users, newest first; `limit` 1 to 100 (10). */
    getRecentUnlocks: (parameters: { readonly limit?: number | undefined } = {}, call?: CallOptions) =>
      get<RecentUnlocks>('/api/achievements/recent', parameters, call)
  }
}
