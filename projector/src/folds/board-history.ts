import { compareRead, compareText, type ReadMeasure, readMeasure, type Standing } from '@gamenet/schemas'

/*
 * history     the distinct events of one entry, in the order of the fold's rules
 * state       an entry after one event, until the next one
 * window      the instants that are folded again: from the earliest touched one
 * base        the states just before the window
 */

/** The position of an event in the log. */
export type Position = { readonly epoch: number; readonly partition: number; readonly offset: number }

/** One state of one entry. */
export type State = Standing &
  Position & {
    /** The index of the entry. */
    readonly entry: number
    readonly ms: number
    /** True if the entry is not on the board in this state. */
    readonly isGone: boolean
    /** JSON text; '' without details. */
    readonly details: string
    /** Its place among the states of its board; used only by `BoardRanks`. */
    seat?: Seat | undefined
    /** Its parsed measure, once a comparison needed it. */
    read?: ReadMeasure
  }

/** The kinds of entries of `ranked` in the schemas. */
export type Kind = 'ordered' | 'stated' | 'measured'

/**
 * A state's places in the trees of ranks. Stored in the state, because a lookup by state would cost more than the trees
 * do.
 */
export type Seat = {
  readonly kind: Kind
  /** Place in the tree of its kind. */
  place: number
  /** Place among all measures, and the first place with an equal one; only if a board has measured entries. */
  measure: number
  equal: number
}

/** An entry with its history, or the part that matters in the window. */
export type Entry = {
  readonly playerName: string
  readonly occurrence: number
  readonly playerKey: string
  /** In the order of the fold's rules. */
  readonly states: readonly State[]
  /** When it was first on the board; 0 if never. */
  readonly firstMs: number
  /** Index of the first state in the window; the number of states if there is none. */
  readonly first: number
}

/**
 * Returns a negative number if `a` is lower in the log. For events of one board, whose partition follows from the
 * epoch.
 */
export function comparePositions(a: Position, b: Position): number {
  return a.epoch - b.epoch || a.offset - b.offset
}

/** By instant, then position: the order of 0.2.0. */
export function compareArrivals(a: State, b: State): number {
  return a.ms - b.ms || comparePositions(a, b)
}

/**
 * By instant; at one instant removals first, then values from the worst to the best, because files with dates only have
 * several states of one entry at one instant, in any order. Positions decide only between states without a difference.
 */
export function compareStates(a: State, b: State): number {
  return (
    a.ms - b.ms ||
    Number(b.isGone) - Number(a.isGone) ||
    compareRead(readOf(b), readOf(a)) ||
    compareText(a.playerName, b.playerName) ||
    a.occurrence - b.occurrence ||
    compareText(a.rating, b.rating) ||
    // The difference of two infinities is NaN, which counts as equal.
    (b.statedRank ?? Number.POSITIVE_INFINITY) - (a.statedRank ?? Number.POSITIVE_INFINITY) ||
    (a.order ?? Number.NEGATIVE_INFINITY) - (b.order ?? Number.NEGATIVE_INFINITY) ||
    (a.step ?? Number.NEGATIVE_INFINITY) - (b.step ?? Number.NEGATIVE_INFINITY) ||
    compareText(a.details, b.details) ||
    comparePositions(a, b)
  )
}

function readOf(state: State): ReadMeasure {
  state.read ??= readMeasure(state)
  return state.read
}

/** The rules of a fold. A changed rule is another fold: tables are continued by the one that made them. */
export type BoardRules = {
  readonly isSame: SameMeasure
  /** The order of events; the last state of an entry is its current one. */
  compare(a: State, b: State): number
  /** True if a removal is judged with what comes at its instant, which the order then puts behind it. */
  readonly isRemovalPartOfInstant: boolean
}

type Measure = Pick<Standing, 'rating' | 'timeMs'>

/** Returns whether two states have an equal measure; else the later one is a change. */
export type SameMeasure = (a: Measure, b: Measure) => boolean

/** Returns true for the same time in any spelling, or the same text of a score. */
export const isSameMeasure: SameMeasure = (a, b) =>
  a.timeMs === b.timeMs && (a.timeMs !== null || a.rating === b.rating)

/** Returns true if the entry shows the same text and time in both states. */
export const isSameText: SameMeasure = (a, b) => a.rating === b.rating && a.timeMs === b.timeMs

/** The current rules. */
export const boardRules: BoardRules = { isSame: isSameMeasure, compare: compareStates, isRemovalPartOfInstant: true }

/** Returns true if no source stated the entry's place, so that its measure determines it. */
export function isMeasured({ order, statedRank }: Pick<Standing, 'order' | 'statedRank'>): boolean {
  return order === null && statedRank === null
}
