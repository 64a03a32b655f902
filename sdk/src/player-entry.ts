import type { EntryMatches, RosterMatches } from './answers.js'
import type { CallOptions, Get, Post } from './request.js'

/** Methods about players and their ranks on boards. Names are whole names, compared without case. */
export function playerEntryMethods(get: Get, post: Post) {
  return {
    /** Returns a player's entries on all boards. */
    searchPlayer: (parameters: { readonly playerName: string }, call?: CallOptions) =>
      get<EntryMatches>('/api/datasearch/player/:playerName', parameters, call),

    /** Returns entries of up to 20 players; `names` are separated by commas. */
    searchPlayers: (
      parameters: { readonly names: string; readonly titleId?: string | undefined },
      call?: CallOptions
    ) => get<EntryMatches>('/api/datasearch/players', parameters, call),

    /** Returns the boards on which up to 20 players all have the given ranks, within `tolerance` (0) ranks. */
    searchRoster: (
      question: {
        readonly players: readonly { readonly playerName: string; readonly rank: number }[]
        readonly tolerance?: number | undefined
        readonly titleId?: string | undefined
      },
      call?: CallOptions
    ) => post<RosterMatches>('/api/datasearch/roster', question, call)
  }
}
