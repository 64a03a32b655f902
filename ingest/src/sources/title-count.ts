import type { TitleCounted } from '@gamenet/schemas'
import type { HomePage } from '../pages/home-page.js'

/** Returns one count per readable row. A title without a readable row was not observed, not empty. */
export function titleCountsOf(page: HomePage, observedAt: string): TitleCounted[] {
  return page.titles.map(({ titleId, online, sessions, lobbyPlayers }) => ({
    titleId,
    observedAt,
    online,
    ...(sessions !== undefined && { sessions }),
    ...(lobbyPlayers !== undefined && { lobbyPlayers })
  }))
}
