import { instantOf, type LeaderboardDescribed } from '@gamenet/schemas'
import type { ListedBoard } from '../pages/board-list.js'

/** The last known state of a board. */
export type KnownBoard = { readonly name: string; readonly listed: boolean; readonly observedAtMs: number }

/**
 * Returns the changes of a title's list: boards that are new, renamed, listed again or no longer listed; empty if
 * nothing changed. Each is dated after the last event of its board, regardless of clocks.
 */
export function leaderboardsOf(
  titleId: string,
  list: readonly ListedBoard[],
  known: ReadonlyMap<number, KnownBoard>,
  observedAtMs: number
): LeaderboardDescribed[] {
  const describe = (leaderboardId: number, name: string, listed: boolean): LeaderboardDescribed => {
    const after = known.get(leaderboardId)?.observedAtMs ?? -1
    return {
      titleId,
      leaderboardId,
      name,
      ...(!listed && { listed }),
      observedAt: instantOf(Math.max(observedAtMs, after + 1))
    }
  }
  const ids = new Set(list.map(({ leaderboardId }) => leaderboardId))
  const shown = list.filter(({ leaderboardId, name }) => {
    const before = known.get(leaderboardId)
    return before === undefined || !before.listed || before.name !== name
  })
  const vanished = [...known].filter(([leaderboardId, { listed }]) => listed && !ids.has(leaderboardId))
  return [
    ...shown.map(({ leaderboardId, name }) => describe(leaderboardId, name, true)),
    ...vanished.map(([leaderboardId, { name }]) => describe(leaderboardId, name, false))
  ]
}
