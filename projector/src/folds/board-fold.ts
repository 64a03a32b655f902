import { type RankGoal, ranked, rankGoals } from '@gamenet/schemas'
import { BoardGoals, cutGoals, type Reached } from './board-goals.js'
import { compareStates, type Entry, isMeasured, type State } from './board-history.js'
import { BoardRanks } from './board-ranks.js'
import { BoardRecords, cutAt, type Reign } from './board-records.js'
import { type EntryChange, entryChanges } from './entry-changes.js'

/** A change with the ranks of its entry before and after its instant; null where it is not on the board. */
export type RankedChange = EntryChange & { readonly previousRank: number | null; readonly newRank: number | null }

export type FoldedBoard = {
  /** The entries on the board at the end, in display order. */
  readonly standing: readonly { readonly entry: State; readonly rank: number }[]
  /** The last states of the entries that left in the window, or were removed in it again. */
  readonly gone: readonly State[]
  /** The changes of the window, and what is none any more. */
  readonly changes: readonly RankedChange[]
  readonly reigns: readonly Reign[]
  /** When players first stood where goals ask for. */
  readonly reached: readonly Reached[]
}

/** What is told of a board before the window. */
export type ToldBefore = { readonly reigns: readonly Reign[]; readonly reached: readonly Reached[] }

/**
 * Folds a board from `sinceMs` on: n events in n log n steps, whatever the board's size.
 *
 * `entries` are all that are on the board just before, or are touched in the window. One that is touched comes with its whole
 * history, for where its changes were recorded depends on it; of another what decides in the window is enough.
 */
export function foldBoard(
  entries: readonly Entry[],
  sinceMs: number,
  before: ToldBefore,
  asked: readonly RankGoal[] = rankGoals
): FoldedBoard {
  const window = entries
    .flatMap(({ states, first }) => (first === 0 ? states : states.slice(first)))
    .sort(compareStates)
  const current = entries.map(({ states, first }) => states[first - 1])
  const changes = entries.flatMap(({ states, first }) => (first < states.length ? entryChanges(states, first) : []))
  const goals = new BoardGoals(cutGoals(before.reached, sinceMs), entries, asked)
  const board = boardBefore(entries, current, window, { reigns: cutAt(before.reigns, sinceMs), goals })
  const follow = rankFollower(changes, (entry) => board.rankOf(entry))

  for (let n = 0; n < window.length; ) {
    let next = n
    while (next < window.length && window[next]?.ms === window[n]?.ms) next += 1
    const atOnce = window.slice(n, next)
    follow.around(atOnce, () => board.pass(atOnce))
    n = next
  }
  const last = current.filter((state) => state !== undefined)
  const touched = new Set(window.map(({ entry }) => entry))
  return {
    standing: ranked(last.filter(({ isGone }) => !isGone)),
    gone: last.filter(({ isGone, entry }) => isGone && touched.has(entry)),
    changes: follow.changes,
    reigns: board.records.reigns,
    reached: goals.reached
  }
}

/** The board as it stood before the window; `pass` takes the events of one instant, and brings `current` up to date. */
function boardBefore(
  entries: readonly Entry[],
  current: (State | undefined)[],
  window: readonly State[],
  { reigns, goals }: { readonly reigns: readonly Reign[]; readonly goals: BoardGoals }
) {
  const base = current.filter((state) => state !== undefined && !state.isGone) as State[]
  const present = [...base, ...window.filter(({ isGone }) => !isGone)]
  const hasMeasured = present.some(isMeasured)
  const ranks = new BoardRanks(present, goals.marks)
  ranks.enterAll(base, (state) => goals.marksOf(state))
  const records = new BoardRecords(reigns, hasMeasured ? entries.flatMap(({ states }) => states) : [], hasMeasured)
  for (const { states, first } of entries) {
    for (const [n, state] of states.slice(0, first).entries()) records.take(state, states[n - 1])
  }
  const holderOf = entryFinder(entries)
  const shown = (entry: number | undefined) => {
    const state = entry === undefined ? undefined : current[entry]
    return state === undefined || state.isGone ? undefined : state
  }
  const pass = (atOnce: readonly State[]) => {
    const before = atOnce.map((state) => {
      const last = current[state.entry]
      if (last !== undefined && !last.isGone) ranks.leave(last)
      if (!state.isGone) ranks.enter(state, goals.marksOf(state))
      current[state.entry] = state
      return last
    })
    for (const [n, state] of atOnce.entries()) {
      records.take(state, before[n])
      if (!ranks.hasRankedOnes) records.judgeMeasures(state.ms)
    }
    const at = atOnce[0]?.ms ?? 0
    if (ranks.hasRankedOnes) records.judgeRanks(at, ranks, (reign) => shown(holderOf(reign)))
    goals.judge(at, ranks)
  }
  const rankOf = (entry: number): number | null => {
    const state = shown(entry)
    return state === undefined ? null : ranks.rankOf(state)
  }
  return { records, pass, rankOf }
}

/** Finds the entry that a reign is about. The names are gathered at the first question: a board seen first asks none. */
function entryFinder(entries: readonly Entry[]): (reign: Reign) => number | undefined {
  const keyOf = ({ occurrence, playerName }: Entry | Reign) => `${occurrence}/${playerName}`
  let byName: ReadonlyMap<string, number> | undefined
  return (reign) => {
    byName ??= new Map(entries.map((entry, n) => [keyOf(entry), n]))
    return byName.get(keyOf(reign))
  }
}

/** Writes down the ranks around each instant, of the entries that have a change in it. */
function rankFollower(changes: readonly EntryChange[], rankOf: (entry: number) => number | null) {
  // Written out, for objects that are spread take four times as long.
  const all = changes.map(({ state, before, change, recorded }) => {
    return { state, before, change, recorded, previousRank: null as number | null, newRank: null as number | null }
  })
  const byState = new Map(all.map((change) => [change.state, change]))
  return {
    changes: all as readonly RankedChange[],
    around(states: readonly State[], pass: () => void): void {
      const followed = states.flatMap((state) => {
        const change = byState.get(state)
        return change?.change === undefined ? [] : change
      })
      for (const change of followed) change.previousRank = rankOf(change.state.entry)
      pass()
      for (const change of followed) change.newRank = rankOf(change.state.entry)
    }
  }
}
