import { compareRead, compareText, type ReadMeasure, readMeasure } from '@gamenet/schemas'
import type { Kind, Seat, State } from './board-history.js'
import { NO_WISH, RankTree, type Wish } from './rank-tree.js'

const KINDS: readonly Kind[] = ['ordered', 'stated', 'measured']

/**
 * The entries of a board at one instant, with ranks and leader in logarithmic time by the rule of `ranked` in the
 * schemas. Updated per change.
 */
export class BoardRanks {
  readonly #trees: Readonly<Record<Kind, RankTree>>
  readonly #byPlace: Readonly<Record<Kind, readonly State[]>>
  readonly #measures: RankTree | undefined
  #entries = 0
  #rankedOnes = 0

  /** `states`: all states that will be on the board. */
  constructor(states: readonly State[]) {
    const kinds: Record<Kind, State[]> = { ordered: [], stated: [], measured: [] }
    for (const state of states) {
      const kind = kindOf(state)
      state.seat = { kind, place: 0, measure: 0, equal: 0 }
      kinds[kind].push(state)
    }
    const byName = (a: State, b: State) => compareText(a.playerName, b.playerName) || a.occurrence - b.occurrence
    const { ordered, stated, measured } = kinds
    const measures = measured.length === 0 ? [] : byMeasure(states)
    for (const [n, { state, equal }] of measures.entries()) Object.assign(seatOf(state), { measure: n, equal })
    this.#byPlace = {
      ordered: ordered.sort((a, b) => (a.order ?? 0) - (b.order ?? 0) || byName(a, b)),
      stated: stated.sort((a, b) => (a.statedRank ?? 0) - (b.statedRank ?? 0) || byName(a, b)),
      measured: measured.sort((a, b) => seatOf(a).equal - seatOf(b).equal || byName(a, b))
    }
    for (const all of Object.values(this.#byPlace)) {
      for (const [n, state] of all.entries()) seatOf(state).place = n
    }
    this.#trees = {
      ordered: new RankTree(ordered.length),
      stated: new RankTree(stated.length),
      measured: new RankTree(measured.length)
    }
    this.#measures = measured.length === 0 ? undefined : new RankTree(measures.length)
  }

  /** True while an entry is on the board whose source stated its place, by order or rank. */
  get hasRankedOnes(): boolean {
    return this.#rankedOnes > 0
  }

  /** The number of entries on the board. */
  get entries(): number {
    return this.#entries
  }

  /** Adds the initial entries, with the wish of each. */
  enterAll(states: readonly State[], wishOf: (state: State) => Wish): void {
    const seated = states.map((state) => ({ state, ...seatOf(state) }))
    for (const [kind, tree] of Object.entries(this.#trees)) {
      const of = seated.filter((seat) => seat.kind === kind)
      tree.takeAll(of.map(({ state, place }) => [place, stepOf(state), wishOf(state)]))
    }
    this.#measures?.takeAll(seated.map(({ measure }) => [measure, 1, NO_WISH]))
    this.#entries += states.length
    this.#rankedOnes += seated.filter(({ kind }) => kind !== 'measured').length
  }

  enter(state: State, wish = NO_WISH): void {
    const { kind, place, measure } = seatOf(state)
    this.#trees[kind].take(place, stepOf(state), wish)
    this.#measures?.take(measure, 1)
    this.#entries += 1
    if (kind !== 'measured') this.#rankedOnes += 1
  }

  /** Sets the wish of a state on the board. */
  wish(state: State, wish: Wish): void {
    const { kind, place } = seatOf(state)
    this.#trees[kind].take(place, stepOf(state), wish)
  }

  leave(state: State): void {
    const { kind, place, measure } = seatOf(state)
    this.#trees[kind].leave(place)
    this.#measures?.leave(measure)
    this.#entries -= 1
    if (kind !== 'measured') this.#rankedOnes -= 1
  }

  /** Returns the rank of a state whose entry is on the board. */
  rankOf(state: State): number {
    const { kind, place, equal } = seatOf(state)
    if (kind === 'ordered') return this.#trees.ordered.sumThrough(place)
    if (kind === 'stated') return state.statedRank ?? 0
    return 1 + (this.#measures?.sumBefore(equal) ?? 0)
  }

  /** Returns the best rank on the board; Infinity if it is empty. */
  bestRank(): number {
    const { ordered, stated, measured } = this.#trees
    if (stated.isEmpty && measured.isEmpty) return ordered.least()
    return this.leader()?.rank ?? Number.POSITIVE_INFINITY
  }

  /** Returns an entry with this mark, given as a bit, and a rank of at most `most`; undefined if there is none. */
  firstMarkedWithin(most: number, mark: number): State | undefined {
    for (const kind of KINDS) {
      const place = this.#trees[kind].firstMarkedWithin(kind === 'ordered' ? most : 0, mark)
      const state = place === undefined ? undefined : this.#byPlace[kind][place]
      if (state !== undefined && this.rankOf(state) <= most) return state
    }
    return undefined
  }

  /** Returns false if no entry has a rank within the limit of its wish, which takes less time than a search. */
  mayFulfilWishes(): boolean {
    const { ordered, stated, measured } = this.#trees
    return ordered.hasPlaceWithinLimit() || !stated.isEmpty || !measured.isEmpty
  }

  /** Returns the first entry, in display order, with the best rank. */
  leader(): { readonly state: State; readonly rank: number } | undefined {
    let leader: { state: State; rank: number } | undefined
    // Equal ranks are in display order, except stated against measured entries, which are ordered by name.
    for (const kind of KINDS) {
      const first = this.#trees[kind].firstLeast()
      const state = first === undefined ? undefined : this.#byPlace[kind][first.place]
      if (first === undefined || state === undefined) continue
      const rank = kind === 'ordered' ? first.sum : this.rankOf(state)
      const isBefore =
        leader === undefined ||
        rank < leader.rank ||
        (rank === leader.rank && leader.state.order === null && isNamedBefore(state, leader.state))
      if (isBefore) leader = { state, rank }
    }
    return leader
  }

  /** Returns false if a single entry has the best rank, which takes less time than {@link leaders}. */
  mayHaveSeveralLeaders(): boolean {
    const { ordered, stated, measured } = this.#trees
    return ordered.isLeastShared() || !stated.isEmpty || !measured.isEmpty
  }

  /** Yields the entries with the board's best rank. */
  *leaders(rank: number): Generator<State> {
    for (const kind of KINDS) {
      const tree = this.#trees[kind]
      const most = kind === 'ordered' ? rank : 0
      for (let place = tree.nextWithin(most); place !== undefined; place = tree.nextWithin(most, place + 1)) {
        const state = this.#byPlace[kind][place]
        // No ordered entry has a better rank than the best.
        if (state === undefined || (kind !== 'ordered' && this.rankOf(state) !== rank)) break
        yield state
      }
    }
  }
}

function seatOf({ seat }: State): Seat {
  if (seat === undefined) throw new Error('A state entered the board that was not given at the start.')
  return seat
}

/** Returns what a state adds to the running sum in the tree of its kind. */
const stepOf = ({ order, step }: State): number => (order === null ? 0 : (step ?? 0))

function kindOf({ order, statedRank }: State): Kind {
  if (order !== null) return 'ordered'
  return statedRank !== null ? 'stated' : 'measured'
}

/** Returns the states from best to worst measure, each with the index of the first equal one. */
export function byMeasure(states: readonly State[]): { readonly state: State; readonly equal: number }[] {
  const read = states.map((state) => ({ state, measure: readMeasure(state), equal: 0 }))
  read.sort((a, b) => compareRead(a.measure, b.measure))
  let last: { measure: ReadMeasure; equal: number } | undefined
  for (const [n, each] of read.entries()) {
    each.equal = last !== undefined && compareRead(last.measure, each.measure) === 0 ? last.equal : n
    last = each
  }
  return read
}

function isNamedBefore(a: State, b: State): boolean {
  return (compareText(a.playerName, b.playerName) || a.occurrence - b.occurrence) < 0
}
