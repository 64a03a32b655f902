import { type RankGoal, ranked, rankGoals } from '@gamenet/schemas'
import { BoardGoals, cutGoals, type Reached } from './board-goals.js'
import { compareStates, type Entry, isMeasured, isSameMeasure, type SameMeasure, type State } from './board-history.js'
import { BoardRanks } from './board-ranks.js'
import { BoardRecords, cutAt, type Reign } from './board-records.js'
import { type EntryChange, entryChanges } from './entry-changes.js'

/** A change with its ranks. */
export type RankedChange = Readonly<EntryChange>

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

/** The published state of a board before the window. */
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
  asked: readonly RankGoal[] = rankGoals,
  isSame: SameMeasure = isSameMeasure
): FoldedBoard {
  const window = entries
    .flatMap(({ states, first }) => (first === 0 ? states : states.slice(first)))
    .sort(compareStates)
  const current = entries.map(({ states, first }) => states[first - 1])
  const goals = new BoardGoals(cutGoals(before.reached, sinceMs), entries, asked)
  const board = boardBefore(entries, current, window, { reigns: cutAt(before.reigns, sinceMs), goals, isSame })
  const changes = entries.map(({ states, first }) => (first < states.length ? entryChanges(states, first, isSame) : []))
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
  const touched = new Set(window.map(({ entry }) => entry))
  return {
    standing: ranked(last.filter(({ isGone }) => !isGone)),
    gone: last.filter(({ isGone, entry }) => isGone && touched.has(entry)),
    changes: changes.flat(),
    reigns: board.records.reigns,
    reached: goals.reached
  }
}

/**
 * The board as it stood before the window; `pass` takes the events of one instant, from one index in the window to another, and
 * brings `current` up to date.
 */
function boardBefore(
  entries: readonly Entry[],
  current: (State | undefined)[],
  window: readonly State[],
  {
    reigns,
    goals,
    isSame
  }: { readonly reigns: readonly Reign[]; readonly goals: BoardGoals; readonly isSame: SameMeasure }
) {
  const base = current.filter((state) => state !== undefined && !state.isGone) as State[]
  const present = [...base, ...window.filter(({ isGone }) => !isGone)]
  const hasMeasured = present.some(isMeasured)
  const ranks = new BoardRanks(present, goals.marks)
  ranks.enterAll(base, (state) => goals.marksOf(state))
  const records = new BoardRecords(
    reigns,
    hasMeasured ? entries.flatMap(({ states }) => states) : [],
    hasMeasured,
    isSame
  )
  for (const { states, first } of entries) {
    for (const [n, state] of states.slice(0, first).entries()) records.take(state, states[n - 1])
  }
  const holderOf = entryFinder(entries)
  const shown = (entry: number | undefined) => {
    const state = entry === undefined ? undefined : current[entry]
    return state === undefined || state.isGone ? undefined : state
  }
  /** By event of the window: the state that it replaces. */
  const replaced: (State | undefined)[] = []
  const pass = (from: number, to: number) => {
    const at = window[from]?.ms ?? 0
    for (let n = from; n < to; n += 1) {
      const state = window[n] as State
      const last = current[state.entry]
      if (last !== undefined && !last.isGone) ranks.leave(last)
      if (!state.isGone) ranks.enter(state, goals.marksOf(state))
      current[state.entry] = state
      replaced.push(last)
    }
    for (let n = from; n < to; n += 1) {
      records.take(window[n] as State, replaced[n])
      if (!ranks.hasRankedOnes) records.judgeMeasures(at)
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

/** Finds the entry that a reign is about. The names are gathered at the first question: a board seen first asks none. */
function entryFinder(entries: readonly Entry[]): (reign: Reign) => number | undefined {
  const keyOf = ({ occurrence, playerName }: Entry | Reign) => `${occurrence}/${playerName}`
  let byName: ReadonlyMap<string, number> | undefined
  return (reign) => {
    byName ??= new Map(entries.map((entry, n) => [keyOf(entry), n]))
    return byName.get(keyOf(reign))
  }
}

/** By event of the window, the change that it is: an entry's events and its changes have the same order. */
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
