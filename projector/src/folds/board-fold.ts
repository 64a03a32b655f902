import { type RankGoal, ranked, rankGoals } from '@gamenet/schemas'
import { BoardGoals, type Reached } from './board-goals.js'
import { compareStates, type Entry, isMeasured, type State } from './board-history.js'
import { BoardRanks } from './board-ranks.js'
import { BoardRecords, cutAt, type Reign } from './board-records.js'
import { type EntryChange, entryChanges } from './entry-changes.js'

/** A change with its ranks. */
export type RankedChange = Readonly<EntryChange>

export type FoldedBoard = {
  /** The entries on the board at the end, in display order. */
  readonly present: readonly { readonly entry: State; readonly rank: number }[]
  /** The last states of entries that left in the window, or whose removal was repeated in it. */
  readonly gone: readonly State[]
  /** The changes of the window, and events that are no longer changes. */
  readonly changes: readonly RankedChange[]
  readonly reigns: readonly Reign[]
  /** When players first reached the ranks of goals. */
  readonly reached: readonly Reached[]
}

/** The published state of a board before the window. */
export type FormerRows = { readonly reigns: readonly Reign[]; readonly reached: readonly Reached[] }

/**
 * Folds a board from `sinceMs`: O(n log n) in the number of events, whatever the board's size.
 *
 * `entries` contains all entries that are on the board just before the window or are touched in it. A touched entry has
 * its whole history, because its history determines where its changes were recorded; of other entries, the states that
 * matter in the window suffice.
 */
export function foldBoard(
  entries: readonly Entry[],
  sinceMs: number,
  before: FormerRows,
  allGoals: readonly RankGoal[] = rankGoals
): FoldedBoard {
  const window = entries
    .flatMap(({ states, first }) => (first === 0 ? states : states.slice(first)))
    .sort(compareStates)
  const current = entries.map(({ states, first }) => states[first - 1])
  const reached = before.reached.filter(({ atMs }) => atMs < sinceMs)
  const goals = new BoardGoals(reached, entries, allGoals)
  const board = boardBefore(entries, current, window, { reigns: cutAt(before.reigns, sinceMs), goals })
  const changes = entries.map(({ states, first }) => (first < states.length ? entryChanges(states, first) : []))
  const changeAt = changesByEvent(changes, window)

  for (let n = 0; n < window.length; ) {
    let next = n
    while (next < window.length && window[next]?.ms === window[n]?.ms) next += 1
    for (let each = n; each < next; each += 1) {
      const change = changeAt[each]
      if (change?.change !== undefined) change.previousRank = board.rankOf(change.state.entry)
    }
    board.pass(n, next)
    for (let each = n; each < next; each += 1) {
      const change = changeAt[each]
      if (change?.change !== undefined) change.newRank = board.rankOf(change.state.entry)
    }
    n = next
  }
  const last = current.filter((state) => state !== undefined)
  return {
    present: ranked(last.filter(({ isGone }) => !isGone)),
    gone: last.filter(({ isGone, entry }) => isGone && isTouched(entries[entry])),
    changes: changes.flat(),
    reigns: board.records.reigns,
    reached: goals.reached
  }
}

/**
 * The state of the board before the window. `pass` processes the events of one instant, given by two indexes in the
 * window, and updates `current`.
 */
function boardBefore(
  entries: readonly Entry[],
  current: (State | undefined)[],
  window: readonly State[],
  { reigns, goals }: { readonly reigns: readonly Reign[]; readonly goals: BoardGoals }
) {
  const base = current.filter((state) => state !== undefined && !state.isGone) as State[]
  const present = [...base, ...window.filter(({ isGone }) => !isGone)]
  const hasMeasured = present.some(isMeasured)
  const ranks = new BoardRanks(present)
  ranks.enterAll(base, (state) => goals.wishOf(state))
  const records = new BoardRecords(reigns, hasMeasured ? entries.flatMap(({ states }) => states) : [], hasMeasured)
  for (const { states, first } of entries) {
    for (const [n, state] of states.slice(0, first).entries()) records.take(state, states[n - 1])
  }
  const holderOf = entryFinder(entries)
  const shown = (entry: number | undefined) => {
    const state = entry === undefined ? undefined : current[entry]
    return state === undefined || state.isGone ? undefined : state
  }
  /** For each event of the window, the state that it replaces. */
  const replaced: (State | undefined)[] = []
  const pass = (from: number, to: number) => {
    const at = window[from]?.ms ?? 0
    for (let n = from; n < to; n += 1) {
      const state = window[n] as State
      const last = current[state.entry]
      if (last !== undefined && !last.isGone) ranks.leave(last)
      if (!state.isGone) ranks.enter(state, goals.wishOf(state))
      current[state.entry] = state
      replaced.push(last)
    }
    for (let n = from; n < to; n += 1) {
      records.take(window[n] as State, replaced[n])
      // A removal is judged with what comes at its instant, which the order puts behind it.
      const isJudged = window[n]?.isGone === false || n === to - 1
      if (isJudged && !ranks.hasRankedOnes) records.judgeMeasures(at)
    }
    if (ranks.hasRankedOnes) records.judgeRanks(at, ranks, holderOf, shown)
    goals.judge(at, ranks)
  }
  const rankOf = (entry: number): number | null => {
    const state = shown(entry)
    return state === undefined ? null : ranks.rankOf(state)
  }
  return { records, pass, rankOf }
}

/**
 * Returns a function that finds the entry of a reign. It indexes the names at its first call; a new board never calls
 * it.
 */
function entryFinder(entries: readonly Entry[]): (reign: Reign) => number | undefined {
  const keyOf = ({ occurrence, playerName }: Entry | Reign) => `${occurrence}/${playerName}`
  let byName: ReadonlyMap<string, number> | undefined
  return (reign) => {
    byName ??= new Map(entries.map((entry, n) => [keyOf(entry), n]))
    return byName.get(keyOf(reign))
  }
}

/** Returns whether an entry has states in the window. */
const isTouched = (entry: Entry | undefined): boolean => entry !== undefined && entry.first < entry.states.length

/** Returns the change of each event of the window: an entry's events and its changes have the same order. */
function changesByEvent(
  changes: readonly (readonly EntryChange[])[],
  window: readonly State[]
): (EntryChange | undefined)[] {
  const seen = new Uint32Array(changes.length)
  return window.map((state) => {
    const next = changes[state.entry]?.[seen[state.entry] ?? 0]
    if (next?.state !== state) return undefined
    seen[state.entry] = (seen[state.entry] ?? 0) + 1
    return next
  })
}
