import type { RankGoal } from '@gamenet/schemas'
import type { Entry, State } from './board-history.js'
import type { BoardRanks } from './board-ranks.js'

/** When a player of a board first reached the rank of a goal. */
export type Reached = { readonly playerKey: string; readonly goal: number; readonly atMs: number }

/** Returns what was reached before an instant. */
export function cutGoals(reached: readonly Reached[], ms: number): Reached[] {
  return reached.filter(({ atMs }) => atMs < ms)
}

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

  /** The number of different marks. */
  get marks(): number {
    return this.#goals.length
  }

  /** Returns the marks of an entry as bits. */
  marksOf(state: State): number {
    return this.#lackedBy(this.#keyOf(state))
  }

  /** Evaluates the board after an instant. */
  judge(atMs: number, ranks: BoardRanks): void {
    const found: Reached[] = []
    for (let mark = 0; mark < this.#goals.length; mark += 1) {
      const goal = this.#goals[mark]
      if (goal === undefined || ranks.entries < goal.entries) continue
      if (goal.isShared === true && !ranks.mayHaveSeveralLeaders()) continue
      while (ranks.bestRank(mark) <= goal.rank) {
        const leader = ranks.leader(mark)
        if (leader === undefined || (goal.isShared === true && !this.#isShared(leader.state, leader.rank, ranks))) break
        const playerKey = this.#keyOf(leader.state)
        if (this.#reach(playerKey, mark)) found.push({ playerKey, goal: goal.id, atMs })
        ranks.mark(leader.state, this.#lackedBy(playerKey))
      }
    }
    if (found.length === 0) return
    // In an order that does not depend on the window, so that folding a board again results in the same rows.
    this.reached.push(...found.sort((a, b) => a.goal - b.goal || (a.playerKey < b.playerKey ? -1 : 1)))
  }

  /** Returns whether an entry shares the board's best rank with another player. */
  #isShared(state: State, rank: number, ranks: BoardRanks): boolean {
    if (ranks.bestRank() !== rank) return false
    const playerKey = this.#keyOf(state)
    for (const leader of ranks.leaders(rank)) if (this.#keyOf(leader) !== playerKey) return true
    return false
  }

  /** Removes a mark from a player; false if it was removed before. */
  #reach(playerKey: string, mark: number): boolean {
    const lacking = this.#lackedBy(playerKey)
    this.#lacking.set(playerKey, lacking & ~(1 << mark))
    return (lacking >> mark) % 2 === 1
  }

  #lackedBy(playerKey: string): number {
    return this.#lacking.get(playerKey) ?? 2 ** this.#goals.length - 1
  }

  #keyOf({ entry }: State): string {
    return this.#entries[entry]?.playerKey ?? ''
  }
}
