import type { RankGoal } from '@gamenet/schemas'
import type { Entry, State } from './board-history.js'
import type { BoardRanks } from './board-ranks.js'
import type { Wish } from './rank-tree.js'

/** When a player of a board first reached the rank of a goal. */
export type Reached = { readonly playerKey: string; readonly goal: number; readonly atMs: number }

/**
 * Determines who reaches which goals when, once per instant, because an entry that comes or leaves moves all others. An
 * entry has a mark for each goal that its player has not reached yet, so entries without open goals cost nothing.
 */
export class BoardGoals {
  readonly reached: Reached[]
  /** Goals that a board of this size can fulfil; the index in the list is the mark. */
  readonly #goals: readonly RankGoal[]
  readonly #entries: readonly Entry[]
  readonly #lacking = new Map<string, number>()
  /** By marks. */
  readonly #wishes = new Map<number, Wish>()

  constructor(before: readonly Reached[], entries: readonly Entry[], goals: readonly RankGoal[]) {
    this.reached = [...before]
    this.#goals = goals.filter((goal) => goal.entries <= entries.length)
    this.#entries = entries
    const markOf = new Map(this.#goals.map(({ id }, mark) => [id, mark]))
    for (const { playerKey, goal } of before) {
      const mark = markOf.get(goal)
      if (mark !== undefined) this.#reach(playerKey, mark)
    }
  }

  /**
   * Returns the goals that an entry's player has not reached: their marks as bits, and the worst rank that reaches one.
   */
  wishOf(state: State): Wish {
    return this.#wishOf(this.#keyOf(state))
  }

  /** Evaluates the board after an instant. */
  judge(atMs: number, ranks: BoardRanks): void {
    const found: Reached[] = []
    const mayFulfilWishes = ranks.mayFulfilWishes()
    for (const [mark, goal] of this.#goals.entries()) {
      if (ranks.entries < goal.entries) continue
      if (!(goal.isShared === true ? ranks.mayHaveSeveralLeaders() : mayFulfilWishes)) continue
      const most = goal.isShared === true ? this.#sharedRank(goal.rank, ranks) : goal.rank
      for (;;) {
        const state = ranks.firstMarkedWithin(most, 1 << mark)
        if (state === undefined) break
        const playerKey = this.#keyOf(state)
        if (this.#reach(playerKey, mark)) found.push({ playerKey, goal: goal.id, atMs })
        ranks.wish(state, this.#wishOf(playerKey))
      }
    }
    if (found.length === 0) return
    // In an order that does not depend on the window, so that folding a board again results in the same rows.
    this.reached.push(...found.sort((a, b) => a.goal - b.goal || (a.playerKey < b.playerKey ? -1 : 1)))
  }

  /** Returns the board's best rank if several players have it and it is at most `most`; else -Infinity. */
  #sharedRank(most: number, ranks: BoardRanks): number {
    const rank = ranks.bestRank()
    const players = new Set<string>()
    for (const leader of rank > most ? [] : ranks.leaders(rank)) {
      if (players.add(this.#keyOf(leader)).size > 1) return rank
    }
    return Number.NEGATIVE_INFINITY
  }

  /** Removes a mark from a player; false if it was removed before. */
  #reach(playerKey: string, mark: number): boolean {
    const lacking = this.#lackedBy(playerKey)
    this.#lacking.set(playerKey, lacking & ~(1 << mark))
    return (lacking >> mark) % 2 === 1
  }

  #wishOf(playerKey: string): Wish {
    const marks = this.#lackedBy(playerKey)
    const known = this.#wishes.get(marks)
    if (known !== undefined) return known
    const lacked = this.#goals.filter(({ isShared }, mark) => isShared !== true && (marks >> mark) % 2 === 1)
    const wish = { marks, limit: Math.max(...lacked.map(({ rank }) => rank)) }
    this.#wishes.set(marks, wish)
    return wish
  }

  #lackedBy(playerKey: string): number {
    return this.#lacking.get(playerKey) ?? 2 ** this.#goals.length - 1
  }

  #keyOf({ entry }: State): string {
    return this.#entries[entry]?.playerKey ?? ''
  }
}
