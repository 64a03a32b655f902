import type { Standing } from '@gamenet/schemas'
import { compareStates, isMeasured, isSameMeasure, type State } from './board-history.js'
import { type BoardRanks, byMeasure } from './board-ranks.js'
import { RankTree } from './rank-tree.js'

/** A period in which one entry held the board's record. */
export type Reign = Pick<Standing, 'playerName' | 'occurrence' | 'rating' | 'timeMs'> & {
  /** When the record was set. */
  readonly setAt: number
  /** When it became the best, for the first time or again. */
  readonly fromAt: number
  /** When it was no longer the best; null if it still is. */
  readonly toAt: number | null
}

/**
 * Computes the reigns of a board's record.
 *
 * While a source states places, the best rank holds the record, evaluated once per instant. If only measures decide,
 * the record is the best of all valid states without a stated place, evaluated per event, because sources with whole
 * seconds list two records of one second. A state is valid until its entry is removed or gets a stated place, so an
 * entry's own later, worse state takes nothing back.
 */
export class BoardRecords {
  readonly reigns: Reign[]
  readonly #valid: ValidStates | undefined
  /** By entry: the start of its current rating. */
  readonly #since = new Map<number, number>()
  /** The entry of the newest reign, once known. */
  #holder: number | undefined

  /** `states`: all published states; `hasMeasured`: whether measures can ever decide. */
  constructor(before: readonly Reign[], states: readonly State[], hasMeasured: boolean) {
    this.reigns = [...before]
    this.#valid = hasMeasured ? new ValidStates(states) : undefined
  }

  /** Adds an event. `before` is the state that it replaces. */
  take(state: State, before: State | undefined): void {
    if (state.isGone) {
      this.#valid?.passed(state.entry)
      return
    }
    if (isMeasured(state)) this.#valid?.shown(state)
    else this.#valid?.passed(state.entry)
    if (before === undefined || before.isGone || !isSameMeasure(before, state)) this.#since.set(state.entry, state.ms)
  }

  /** Evaluates the record by measure, after an event. */
  judgeMeasures(atMs: number): void {
    const best = this.#valid?.best()
    const reign = this.#current()
    const isHeld =
      reign !== undefined &&
      best !== undefined &&
      isOf(reign, best) &&
      isSameMeasure(reign, best) &&
      reign.setAt === best.ms
    if (!isHeld) this.#follow(best, best?.ms ?? atMs, atMs)
  }

  /**
   * Evaluates the record by rank, after an instant. `entryOf` finds the entry of a reign, `shown` returns the current
   * state of an entry.
   */
  judgeRanks(
    atMs: number,
    ranks: BoardRanks,
    entryOf: (reign: Reign) => number | undefined,
    shown: (entry: number | undefined) => State | undefined
  ): void {
    const reign = this.#current()
    if (reign !== undefined) this.#holder ??= entryOf(reign)
    const holder = reign === undefined ? undefined : shown(this.#holder)
    const isHeld =
      reign !== undefined &&
      holder !== undefined &&
      isSameMeasure(reign, holder) &&
      ranks.rankOf(holder) === ranks.bestRank()
    if (isHeld) return
    const leader = ranks.leader()
    const since = leader === undefined ? undefined : this.#since.get(leader.state.entry)
    this.#follow(leader?.state, since ?? atMs, atMs)
  }

  #current(): Reign | undefined {
    const last = this.reigns.at(-1)
    return last?.toAt === null ? last : undefined
  }

  #follow(state: State | undefined, setAt: number, atMs: number): void {
    const ended = this.#current()
    if (ended !== undefined) this.reigns[this.reigns.length - 1] = { ...ended, toAt: atMs }
    this.#holder = state?.entry
    if (state === undefined) return
    const { playerName, occurrence, rating, timeMs } = state
    this.reigns.push({ playerName, occurrence, rating, timeMs, setAt, fromAt: atMs, toAt: null })
  }
}

/** Returns the reigns just before an instant. */
export function cutAt(reigns: readonly Reign[], ms: number): Reign[] {
  return reigns
    .filter(({ fromAt }) => fromAt < ms)
    .map((reign) => (reign.toAt !== null && reign.toAt >= ms ? { ...reign, toAt: null } : reign))
}

function isOf(reign: Reign, state: State): boolean {
  return reign.playerName === state.playerName && reign.occurrence === state.occurrence
}

/** All states that count for the record by measure, and the best of them; of equal ones, the earliest. */
class ValidStates {
  readonly #byPlace: readonly State[]
  readonly #places = new Map<State, number>()
  readonly #tree: RankTree
  readonly #ofEntry = new Map<number, State[]>()

  constructor(states: readonly State[]) {
    const sorted = byMeasure(states.filter((state) => !state.isGone && isMeasured(state)))
    this.#byPlace = sorted
      .sort((a, b) => a.equal - b.equal || compareStates(a.state, b.state))
      .map(({ state }) => state)
    for (const [n, state] of this.#byPlace.entries()) this.#places.set(state, n)
    this.#tree = new RankTree(this.#byPlace.length)
  }

  shown(state: State): void {
    this.#tree.take(this.#place(state), 0)
    const of = this.#ofEntry.get(state.entry)
    if (of === undefined) this.#ofEntry.set(state.entry, [state])
    else of.push(state)
  }

  /** Removes the states of an entry. */
  passed(entry: number): void {
    for (const state of this.#ofEntry.get(entry) ?? []) this.#tree.leave(this.#place(state))
    this.#ofEntry.delete(entry)
  }

  best(): State | undefined {
    const first = this.#tree.firstLeast()
    return first === undefined ? undefined : this.#byPlace[first.place]
  }

  #place(state: State): number {
    const place = this.#places.get(state)
    if (place === undefined) throw new Error('A state was shown that was not given at the start.')
    return place
  }
}
