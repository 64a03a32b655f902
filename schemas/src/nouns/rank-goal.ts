/*
 * Ranks that achievements require. The fold of boards determines when a player first reached one, because only the fold
 * computes which entries moved when others came or left.
 */

/** A rank or better, on a board with at least this many entries. */
export type RankGoal = {
  /** Stored in the tables: never changed or reused. Below 32. */
  readonly id: number
  readonly rank: number
  readonly entries: number
  /** Counts only while another player has the same rank and no player a better one. */
  readonly isShared?: true
}

/** A new goal is evaluated from the board's next change, unless `leaderboard-entry` is rebuilt. */
export const rankGoals: readonly RankGoal[] = [
  { id: 1, rank: 100, entries: 101 },
  { id: 2, rank: 10, entries: 11 },
  { id: 3, rank: 3, entries: 10 },
  { id: 4, rank: 1, entries: 10 },
  { id: 5, rank: 10, entries: 1 },
  { id: 6, rank: 1, entries: 2, isShared: true }
]
