import { compareRead, compareText, type ReadMeasure, readMeasure, type Standing } from '@gamenet/schemas'

/*
 * history     the distinct events of one entry, in the order of `compareStates`
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
  /** In the order of {@link compareStates}. */
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
export const comparePositions = (a: Position, b: Position): number => a.epoch - b.epoch || a.offset - b.offset

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

type Measure = Pick<Standing, 'rating' | 'timeMs'>

/** Returns whether two states have an equal measure: the same time in any spelling, or the same text of a score. */
export function isSameMeasure(a: Measure, b: Measure): boolean {
  return a.timeMs === b.timeMs && (a.timeMs !== null || a.rating === b.rating)
}

/** Returns true if no source stated the entry's place, so that its measure determines it. */
export function isMeasured({ order, statedRank }: Pick<Standing, 'order' | 'statedRank'>): boolean {
  return order === null && statedRank === null
}
