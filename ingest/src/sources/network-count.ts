import { COUNT_MAX, type NetworkCounted } from '@gamenet/schemas'
import type { HomePage } from '../pages/home-page.js'

/**
 * The network's counts as its home page says them. The page has no lobby total: it is the sum over all titles, and
 * is left out unless `rowsComplete`, because a sum over missing rows is a wrong number that looks like a right one.
 */
export function networkCountOf(page: HomePage, observedAt: string, rowsComplete: boolean): NetworkCounted {
  const lobbies = page.titles.reduce((sum, title) => sum + title.sessions, 0)
  return {
    observedAt,
    registered: page.registered,
    online: page.online,
    ...(rowsComplete && lobbies <= COUNT_MAX && { lobbies })
  }
}
