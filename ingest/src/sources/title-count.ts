import type { TitleCounted } from '@gamenet/schemas'
import type { HomePage } from '../pages/home-page.js'

/** One count for each title whose row could be read; a title without one was not seen, not empty. */
export function titleCountsOf(page: HomePage, observedAt: string): TitleCounted[] {
  return page.titles.map(({ titleId, online, sessions, lobbyPlayers }) => ({
    titleId,
    observedAt,
    online,
    sessions,
    lobbyPlayers
  }))
}
