import type { Matches, MatchHistory, MatchStats } from './answers.js'
import type { CallOptions, Get } from './request.js'
import type { Window } from './window.js'

type OfTitle = { readonly titleId: string }

/** Methods about the matches of titles; `titleId` is an id or a name. */
export function matchListMethods(get: Get) {
  return {
    /** Returns the lobbies of a title in its newest list. */
    getMatches: (parameters: OfTitle, call?: CallOptions) =>
      get<Matches>('/api/title/:titleId/matches', parameters, call),

    /** The same as `getMatches`, by another path. */
    getGameMatches: (parameters: OfTitle, call?: CallOptions) =>
      get<Matches>('/api/game/:titleId/matches', parameters, call),

    /** @deprecated Use `getMatches`. */
    getLobbies: (parameters: OfTitle, call?: CallOptions) =>
      get<Matches>('/api/title/:titleId/lobbies', parameters, call),

    /** Returns matches of a title that overlap the window, the last begun first; `hours` 1 to 720 (24). */
    getMatchHistory: (parameters: Window & OfTitle & { readonly hours?: number | undefined }, call?: CallOptions) =>
      get<MatchHistory>('/api/title/:titleId/matches/history', parameters, call),

    /** @deprecated Use `getMatchHistory`. */
    getLastMatches: (parameters: OfTitle & { readonly hours: number }, call?: CallOptions) =>
      get<MatchHistory>('/api/title/:titleId/matches/last/:hours', parameters, call),

    /** Returns statistics of a title's matches, now and over 30 days. */
    getMatchStats: (parameters: OfTitle, call?: CallOptions) =>
      get<MatchStats>('/api/title/:titleId/matches/stats', parameters, call),

    /** @deprecated Use `getMatchStats`. */
    getLobbyStats: (parameters: OfTitle, call?: CallOptions) =>
      get<MatchStats>('/api/title/:titleId/lobby-stats', parameters, call)
  }
}
