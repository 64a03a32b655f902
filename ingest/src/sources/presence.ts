import { nameKey, type PresenceSeen } from '@gamenet/schemas'
import type { ShownPlayer } from '../pages/players-page.js'

/** The common facts of all sightings of one page. */
export type Look = { readonly observedAt: string; readonly periodSeconds: number }

/**
 * Returns the sightings of a page: all online users, because each sighting is play time; of the others only those not
 * yet known to be offline, by `nameKey` of their names.
 */
export function presenceOf(
  players: readonly ShownPlayer[],
  knownOffline: ReadonlySet<string>,
  { observedAt, periodSeconds }: Look
): PresenceSeen[] {
  return players
    .filter(({ username, isOnline }) => isOnline || !knownOffline.has(nameKey(username)))
    .map(({ username, gamertag, isOnline, game }) => ({
      username,
      ...(gamertag !== undefined && { gamertag }),
      state: isOnline ? 'online' : 'offline',
      ...(game !== undefined && { game }),
      periodSeconds,
      observedAt
    }))
}
