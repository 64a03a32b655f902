import type { LeaderboardDays, LeaderboardSummary, Leaderboards } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** A game by title id or by name, not encoded. */
export type OfGame = { readonly game: string }
/** A board of a game by its number. */
export type OfBoard = OfGame & { readonly leaderboardId: number }

/** Methods about the boards of a game. */
export function leaderboardMethods(get: Get) {
  return {
    /** Returns the number of boards of a game and the number of their entries. */
    getLeaderboardSummary: (parameters: OfGame, call?: CallOptions) =>
      get<LeaderboardSummary>('/api/game/:game/leaderboard-summary', parameters, call),

    /** Returns the boards that a game lists now, by id. */
    getLeaderboards: (parameters: OfGame, call?: CallOptions) =>
      get<Leaderboards>('/api/game/:game/leaderboards', parameters, call),

    /** Returns when a board was first seen, and the days on which it changed, oldest first. */
    getLeaderboardDays: (parameters: OfBoard, call?: CallOptions) =>
      get<LeaderboardDays>('/api/game/:game/leaderboards/:leaderboardId/days', parameters, call)
  }
}
