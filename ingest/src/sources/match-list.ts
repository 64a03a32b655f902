import type { Lobby, MatchesListed } from '@gamenet/schemas'

/** Returns the lobbies of one title as its page lists them; an empty list means that there are none. */
export function matchListOf(titleId: string, matches: readonly Lobby[], observedAt: string): MatchesListed {
  return { titleId, observedAt, matches: [...matches] }
}
