import { COUNT_MAX, type NetworkCounted } from '@gamenet/schemas'
import type { HomePage } from '../pages/home-page.js'

/**
 * Returns the counts on the network's home page. The page has no lobby total: it is the sum over all titles, and is
 * left out unless `rowsComplete` and all rows have their lobbies, because a sum over missing rows looks right and is
 * wrong.
 */
export function networkCountOf(page: HomePage, observedAt: string, rowsComplete: boolean): NetworkCounted {
  const isComplete = rowsComplete && page.titles.every(({ sessions }) => sessions !== undefined)
  const lobbies = page.titles.reduce((sum, title) => sum + (title.sessions ?? 0), 0)
  return {
    observedAt,
    registered: page.registered,
    online: page.online,
    ...(isComplete && lobbies <= COUNT_MAX && { lobbies })
  }
}
