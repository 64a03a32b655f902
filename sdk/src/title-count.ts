import type { OnlineUsers, Sparklines, TitleOnlineHistory, TopGames } from './answers.js'
import type { CallOptions, Get } from './request.js'
import type { Days, Known, Resolution, Window } from './window.js'

/** Methods about the players of titles. */
export function titleCountMethods(get: Get) {
  return {
    /** Returns the players online of every game, by name. */
    getOnlineUsers: (call?: CallOptions) => get<OnlineUsers>('/api/online-users', {}, call),

    /** Returns players of one title over time, oldest first; `titleId` an id or a name, `hours` 1 to 8760 (48). */
    getTitleOnlineHistory: (
      parameters: Window & Resolution & Known & { readonly titleId: string; readonly hours?: number | undefined },
      call?: CallOptions
    ) => get<TitleOnlineHistory>('/api/title/:titleId/online-users/history', parameters, call),

    /** Returns the trend line of every title; `days` 1 to 90 (30). */
    getSparklines: (parameters: { readonly days?: number | undefined } = {}, call?: CallOptions) =>
      get<Sparklines>('/api/sparklines', parameters, call),

    /** Returns games by their peak, highest first; `days` 1 to 365 (30), `limit` 1 to 500 (all). */
    getTopGames: (parameters: Days & { readonly limit?: number | undefined } = {}, call?: CallOptions) =>
      get<TopGames>('/api/network-stats/top-games', parameters, call)
  }
}
