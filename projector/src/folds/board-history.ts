import type { Standing } from '@gamenet/schemas'

/*
 * history     the distinct events of one entry, by instant, then position
 * state       what one event says of its entry from then on
 * window      the instants that are folded again: from the earliest touched one on
 * base        the states just before the window
 */

/** Where an event stands in the log. */
export type Position = { readonly epoch: number; readonly partition: number; readonly offset: number }

/** One state of one entry. */
export type State = Standing &
  Position & {
    /** Which entry of the board. */
    readonly entry: number
    readonly ms: number
    /** True: from then on it is not on the board. */
    readonly isGone: boolean
    /** JSON text; '' when there are none. */
    readonly details: string
    /** Where it stands among the states of its board; given and used by `BoardRanks` alone. */
    seat?: Seat | undefined
  }

/** The kinds of standing of `ranked` in the schemas. */
export type Kind = 'ordered' | 'stated' | 'measured'

/** A state's places in the trees of ranks. It stands at the state itself: looked up by state it would cost more than the trees do. */
export type Seat = {
  readonly kind: Kind
  /** Place in the tree of its kind. */
  place: number
  /** Place among all measures, and the first place of an equal one; only where a board has measured entries. */
  measure: number
  equal: number
}

/** An entry with its history, or what of it matters to the window. */
export type Entry = {
  readonly playerName: string
  readonly occurrence: number
  readonly playerKey: string
  /** By instant, then position. */
  readonly states: readonly State[]
  /** When it first stood on the board; 0 when it never did. */
  readonly firstMs: number
  /** Index of the first state in the window; the number of states when there is none. */
  readonly first: number
}

/** Below 0 when `a` stands lower in the log. Events of one board: their partition follows from the epoch. */
export function comparePositions(a: Position, b: Position): number {
  return a.epoch - b.epoch || a.offset - b.offset
}

/** By instant, then position. */
export function compareStates(a: State, b: State): number {
  return a.ms - b.ms || comparePositions(a, b)
}

type Measure = Pick<Standing, 'rating' | 'timeMs'>

/** Whether the entry is as good in both states; else the later one is a change. */
export type SameMeasure = (a: Measure, b: Measure) => boolean

/** True for the same time however it is written, or the same text of a score. */
export const isSameMeasure: SameMeasure = (a, b) =>
  a.timeMs === b.timeMs && (a.timeMs !== null || a.rating === b.rating)

/** True when the entry shows the same text and time in both states. */
export const isSameText: SameMeasure = (a, b) => a.rating === b.rating && a.timeMs === b.timeMs

/** True when no source told the entry's place, so that its measure decides. */
export function isMeasured({ order, statedRank }: Pick<Standing, 'order' | 'statedRank'>): boolean {
  return order === null && statedRank === null
}
