import { instantOf, type LeaderboardDescribed } from '@gamenet/schemas'
import type { ListedBoard } from '../pages/board-list.js'

/** A board as the last thing said of it has it. */
export type KnownBoard = { readonly name: string; readonly listed: boolean; readonly observedAtMs: number }

/**
 * What a title's list says that is not known yet: boards that are new, have another name, are listed again, or are no
 * longer listed. Nothing when the list is as it was. Each comes after what is known of its board, whatever clocks say.
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
