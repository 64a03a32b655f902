import type { LeaderboardChanges, Player, PlayerUsers, SearchResults, SuggestedPlayers } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about players. Names are whole names, compared without case. */
export function playerMethods(get: Get) {
  return {
    /** Returns games, boards, players and users by name; `limit` 1 to 50 of each kind (10). */
    search: (parameters: { readonly q: string; readonly limit?: number | undefined }, call?: CallOptions) =>
      get<SearchResults>('/api/search', parameters, call),

    /** Returns names that begin with `q`, for a search box; `limit` 1 to 50 (10). */
    suggestPlayers: (parameters: { readonly q: string; readonly limit?: number | undefined }, call?: CallOptions) =>
      get<SuggestedPlayers>('/api/datasearch/suggest', parameters, call),

    /** Returns a player's boards with rank, percentile and the entry above; `limit` 1 to 1000 (1000). */
    getPlayer: (
      parameters: {
        readonly playerName: string
        readonly limit?: number | undefined
        readonly offset?: number | undefined
      },
      call?: CallOptions
    ) => get<Player>('/api/player/:playerName', parameters, call),

    /** Returns the changes of a player's entries, newest first; `limit` 1 to 500 (50). */
    getPlayerHistory: (
      parameters: {
        readonly playerName: string
        readonly limit?: number | undefined
        readonly offset?: number | undefined
      },
      call?: CallOptions
    ) => get<LeaderboardChanges>('/api/player/:playerName/history', parameters, call),

    /** Returns the users who have a gamertag, by name. */
    getPlayerUsers: (parameters: { readonly playerName: string }, call?: CallOptions) =>
      get<PlayerUsers>('/api/player/:playerName/users', parameters, call)
  }
}
