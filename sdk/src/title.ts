import type { Game, Games } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about what titles are. */
export function titleMethods(get: Get) {
  return {
    /** What is known of a game; `game` is a title id or a name as it is written, with every `/ # & ' : +`. */
    getGame: (parameters: { readonly game: string }, call?: CallOptions) =>
      get<Game>('/api/game/:game', parameters, call),

    /** The names of all games in alphabetical order. */
    getGames: (call?: CallOptions) => get<Games>('/api/games', {}, call)
  }
}
