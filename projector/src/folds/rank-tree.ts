/** What an occupied place waits for. */
export type Wish = {
  /** Bits of 32. */
  readonly marks: number
  /** The greatest running sum that may fulfil it; -Infinity if none does. */
  readonly limit: number
}

export const NO_WISH: Wish = { marks: 0, limit: Number.NEGATIVE_INFINITY }

/**
 * A sequence of places; an occupied place has a step. Updates, running sums and the least running sum take logarithmic
 * time. (A board of 100,000 entries changes 40,000 times; scanning it each time would take an hour.)
 * Occupied places may have a wish; whether one is within its limit is known at once.
 */
export class RankTree {
  readonly #leaves: number
  readonly #sums: Float64Array
  /**
   * Least running sum among the places below a node, relative to the node's own beginning; Infinity if there is none.
   */
  readonly #leasts: Float64Array
  /** All marks of the places below a node. */
  readonly #marks: Int32Array
  /** As `leasts`, of the running sums less the limits of the places. */
  readonly #excesses: Float64Array

  constructor(places: number) {
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(places, 1)))
    this.#sums = new Float64Array(2 * this.#leaves)
    this.#leasts = new Float64Array(2 * this.#leaves).fill(Number.POSITIVE_INFINITY)
    this.#marks = new Int32Array(2 * this.#leaves)
    this.#excesses = new Float64Array(2 * this.#leaves).fill(Number.POSITIVE_INFINITY)
  }

  /** Occupies a place or updates it. */
  take(place: number, step: number, wish = NO_WISH): void {
    this.#put(place, step, wish)
    for (let node = (place + this.#leaves) >> 1; node >= 1; node >>= 1) this.#join(node)
  }

  /** Occupies many places at once. */
  takeAll(taken: Iterable<readonly [place: number, step: number, wish: Wish]>): void {
    for (const [place, step, wish] of taken) this.#put(place, step, wish)
    for (let node = this.#leaves - 1; node >= 1; node -= 1) this.#join(node)
  }

  /** Frees a place. */
  leave(place: number): void {
    const leaf = place + this.#leaves
    this.#sums[leaf] = 0
    this.#leasts[leaf] = Number.POSITIVE_INFINITY
    this.#marks[leaf] = 0
    this.#excesses[leaf] = Number.POSITIVE_INFINITY
    for (let node = leaf >> 1; node >= 1; node >>= 1) this.#join(node)
  }

  /** Returns the sum of the steps of the places before this one. */
  sumBefore(place: number): number {
    let sum = 0
    for (let node = place + this.#leaves; node > 1; node >>= 1) {
      if (node % 2 === 1) sum += this.#sums[node - 1] ?? 0
    }
    return sum
  }

  /** Returns the sum of the steps up to and including this place. */
  sumThrough(place: number): number {
    return this.sumBefore(place) + (this.#sums[place + this.#leaves] ?? 0)
  }

  /** True while no place is occupied. */
  get isEmpty(): boolean {
    return this.least() === Number.POSITIVE_INFINITY
  }

  /** Returns the least running sum of the occupied places; Infinity if there is none. */
  least(): number {
    return this.#least(1)
  }

  /** Returns the first occupied place with the least running sum. */
  firstLeast(): { readonly place: number; readonly sum: number } | undefined {
    const sum = this.least()
    if (sum === Number.POSITIVE_INFINITY) return undefined
    let node = 1
    while (node < this.#leaves) {
      const left = 2 * node
      const ofRight = (this.#sums[left] ?? 0) + this.#least(left + 1)
      node = this.#least(left) <= ofRight ? left : left + 1
    }
    return { place: node - this.#leaves, sum }
  }

  /** Returns whether several places have the least running sum. */
  isLeastShared(): boolean {
    for (let node = 1; node < this.#leaves; ) {
      const left = 2 * node
      const ofLeft = this.#least(left)
      const ofRight = (this.#sums[left] ?? 0) + this.#least(left + 1)
      if (ofLeft === ofRight) return ofLeft !== Number.POSITIVE_INFINITY
      node = ofLeft < ofRight ? left : left + 1
    }
    return false
  }

  /** Returns the first occupied place from `from` with a running sum of at most `most`; undefined if there is none. */
  nextWithin(most: number, from = 0): number | undefined {
    if (from >= this.#leaves) return undefined
    let node = from === 0 ? 1 : from + this.#leaves
    let before = from === 0 ? 0 : this.sumBefore(from)
    // Visits subtrees to the right, each as large as possible, until one contains such a place.
    while (before + this.#least(node) > most) {
      before += this.#sums[node] ?? 0
      while (node % 2 === 1) {
        if (node === 1) return undefined
        node >>= 1
      }
      node += 1
    }
    while (node < this.#leaves) {
      const left = 2 * node
      if (before + this.#least(left) <= most) {
        node = left
      } else {
        before += this.#sums[left] ?? 0
        node = left + 1
      }
    }
    return node - this.#leaves
  }

  /** Returns whether a place has a running sum of at most its limit. */
  hasPlaceWithinLimit(): boolean {
    return (this.#excesses[1] ?? 0) <= 0
  }

  /**
   * Returns the first place with this mark, given as a bit, and a running sum of at most `most`; undefined if there is
   * none. If no step is negative, it takes logarithmic time.
   */
  firstMarkedWithin(most: number, mark: number): number | undefined {
    return this.#firstMarked(1, most, mark)
  }

  #firstMarked(node: number, most: number, mark: number): number | undefined {
    if (((this.#marks[node] ?? 0) & mark) === 0 || this.#least(node) > most) return undefined
    if (node >= this.#leaves) return node - this.#leaves
    const left = 2 * node
    return this.#firstMarked(left, most, mark) ?? this.#firstMarked(left + 1, most - (this.#sums[left] ?? 0), mark)
  }

  #least(node: number): number {
    return this.#leasts[node] ?? Number.POSITIVE_INFINITY
  }

  #put(place: number, step: number, { marks, limit }: Wish): void {
    const leaf = place + this.#leaves
    this.#sums[leaf] = step
    this.#leasts[leaf] = step
    this.#marks[leaf] = marks
    this.#excesses[leaf] = step - limit
  }

  #join(node: number): void {
    const left = 2 * node
    const leftSum = this.#sums[left] ?? 0
    this.#sums[node] = leftSum + (this.#sums[left + 1] ?? 0)
    this.#leasts[node] = Math.min(this.#least(left), leftSum + this.#least(left + 1))
    this.#marks[node] = (this.#marks[left] ?? 0) | (this.#marks[left + 1] ?? 0)
    this.#excesses[node] = Math.min(this.#excesses[left] ?? 0, leftSum + (this.#excesses[left + 1] ?? 0))
  }
}
