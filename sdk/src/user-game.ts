import type { UserGames } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about what users play. */
export function userGameMethods(get: Get) {
  return {
    /** A user's games, last played first. */
    getUserGames: (parameters: { readonly username: string }, call?: CallOptions) =>
      get<UserGames>('/api/profile/:username/games-played', parameters, call)
  }
}
