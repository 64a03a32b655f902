/*
 * Places on a board that achievements ask for. When a player first stood there is found while boards are folded, because only
 * there is it known who moved when others came and left.
 */

/** A rank or better, while the board has at least so many entries. */
export type RankGoal = {
  /** Stands in the tables: never changed and never given to another. Below 32. */
  readonly id: number
  readonly rank: number
  readonly entries: number
  /** True: it counts only while another player has the same rank, and no player a better one. */
  readonly isShared?: true
}

/** One that is added is known of a board from the board's next change on, unless `leaderboard-entry` is projected again. */
export const rankGoals: readonly RankGoal[] = [
  { id: 1, rank: 100, entries: 101 },
  { id: 2, rank: 10, entries: 11 },
  { id: 3, rank: 3, entries: 10 },
  { id: 4, rank: 1, entries: 10 },
  { id: 5, rank: 10, entries: 1 },
  { id: 6, rank: 1, entries: 2, isShared: true }
]
