import type { Game, GameListed, TitleSummary } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about titles. */
export function titleMethods(get: Get) {
  return {
    /** Returns the description of a game; `game` is a title id or a name, not encoded, with every `/ # & ' : +`. */
    getGame: (parameters: { readonly game: string }, call?: CallOptions) =>
      get<Game>('/api/game/:game', parameters, call),

    /** Returns the numbers of a title: players now and before, peaks, rank, lobbies. What has no data is null. */
    getTitle: (parameters: { readonly titleId: string }, call?: CallOptions) =>
      get<TitleSummary>('/api/title/:titleId', parameters, call),

    /** Returns the names of all games in alphabetical order; with `fields: 'all'` with ids and publishers. */
    getGames: <Fields extends 'names' | 'all' = 'names'>(
      parameters: { readonly fields?: Fields | undefined } = {},
      call?: CallOptions
    ) => get<Fields extends 'all' ? GameListed[] : string[]>('/api/games', parameters, call)
  }
}
