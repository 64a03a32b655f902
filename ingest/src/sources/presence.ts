import { nameKey, type PresenceSeen } from '@gamenet/schemas'
import type { ShownPlayer } from '../pages/players-page.js'

/** What is the same for all sightings of one page. */
export type Look = { readonly observedAt: string; readonly periodSeconds: number }

/**
 * Where the users of a page are: all who are online, for each sighting of them is play time; of the others those who are
 * not known to be offline yet, by `nameKey` of their names.
 */
export function presenceOf(
  players: readonly ShownPlayer[],
  knownOffline: ReadonlySet<string>,
  { observedAt, periodSeconds }: Look
): PresenceSeen[] {
  return players
    .filter(({ username, game }) => game !== undefined || !knownOffline.has(nameKey(username)))
    .map(({ username, gamertag, game }) => ({
      username,
      ...(gamertag !== undefined && { gamertag }),
      state: game === undefined ? 'offline' : 'online',
      ...(game !== undefined && { game }),
      periodSeconds,
      observedAt
    }))
}
