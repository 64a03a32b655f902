import type { UserGames } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about the games of users. */
export function userGameMethods(get: Get) {
  return {
    /** Returns a user's games, last played first. */
    getUserGames: (parameters: { readonly username: string }, call?: CallOptions) =>
      get<UserGames>('/api/profile/:username/games-played', parameters, call)
  }
}
