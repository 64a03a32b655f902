/**
 * A sequence of places; an occupied place has a step. Updates, running sums and the least running sum take logarithmic
 * time. (A board of 100,000 entries changes 40,000 times; scanning it each time would take an hour.)
 * Occupied places may have marks; the least running sum among those with a mark is found as fast.
 */
export class RankTree {
  readonly #leaves: number
  readonly #sums: Float64Array
  /** Number of least running sums per node: one for all occupied places, and one per mark. */
  readonly #kinds: number
  /**
   * Least running sums among the places below a node, relative to the node's own beginning; Infinity if there is none.
   * Those of a node are adjacent.
   */
  readonly #leasts: Float64Array

  constructor(places: number, marks = 0) {
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(places, 1)))
    this.#kinds = 1 + marks
    this.#sums = new Float64Array(2 * this.#leaves)
    this.#leasts = new Float64Array(2 * this.#leaves * this.#kinds).fill(Number.POSITIVE_INFINITY)
  }

  /** Occupies a place or updates it: with its step, and its marks as bits. */
  take(place: number, step: number, marks = 0): void {
    this.#put(place, step, marks)
    for (let node = (place + this.#leaves) >> 1; node >= 1; node >>= 1) this.#join(node)
  }

  /** Occupies many places at once: `[place, step, marks]`. */
  takeAll(taken: Iterable<readonly [place: number, step: number, marks: number]>): void {
    for (const [place, step, marks] of taken) this.#put(place, step, marks)
    for (let node = this.#leaves - 1; node >= 1; node -= 1) this.#join(node)
  }

  /** Frees a place. */
  leave(place: number): void {
    const leaf = place + this.#leaves
    this.#sums[leaf] = 0
    this.#leasts.fill(Number.POSITIVE_INFINITY, leaf * this.#kinds, (leaf + 1) * this.#kinds)
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

  /**
   * Returns the least running sum of the occupied places, optionally among those with a mark; Infinity if there is
   * none.
   */
  least(mark?: number): number {
    return this.#least(1, mark === undefined ? 0 : 1 + mark)
  }

  /** Returns the first occupied place with the least running sum, optionally among those with a mark. */
  firstLeast(mark?: number): { readonly place: number; readonly sum: number } | undefined {
    const kind = mark === undefined ? 0 : 1 + mark
    const sum = this.least(mark)
    if (sum === Number.POSITIVE_INFINITY) return undefined
    let node = 1
    while (node < this.#leaves) {
      const left = 2 * node
      const ofRight = (this.#sums[left] ?? 0) + this.#least(left + 1, kind)
      node = this.#least(left, kind) <= ofRight ? left : left + 1
    }
    return { place: node - this.#leaves, sum }
  }

  /** Returns whether several places have the least running sum. */
  isLeastShared(): boolean {
    for (let node = 1; node < this.#leaves; ) {
      const left = 2 * node
      const ofLeft = this.#least(left, 0)
      const ofRight = (this.#sums[left] ?? 0) + this.#least(left + 1, 0)
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
    while (before + this.#least(node, 0) > most) {
      before += this.#sums[node] ?? 0
      while (node % 2 === 1) {
        if (node === 1) return undefined
        node >>= 1
      }
      node += 1
    }
    while (node < this.#leaves) {
      const left = 2 * node
      if (before + this.#least(left, 0) <= most) {
        node = left
      } else {
        before += this.#sums[left] ?? 0
        node = left + 1
      }
    }
    return node - this.#leaves
  }

  #least(node: number, kind: number): number {
    return this.#leasts[node * this.#kinds + kind] ?? Number.POSITIVE_INFINITY
  }

  #put(place: number, step: number, marks: number): void {
    const leaf = place + this.#leaves
    this.#sums[leaf] = step
    for (let kind = 0; kind < this.#kinds; kind += 1) {
      const isIn = kind === 0 || (marks >> (kind - 1)) % 2 === 1
      this.#leasts[leaf * this.#kinds + kind] = isIn ? step : Number.POSITIVE_INFINITY
    }
  }

  #join(node: number): void {
    const leasts = this.#leasts
    const kinds = this.#kinds
    const left = 2 * node
    const leftSum = this.#sums[left] ?? 0
    this.#sums[node] = leftSum + (this.#sums[left + 1] ?? 0)
    // No iterator: this is the innermost loop of a fold.
    for (let to = node * kinds, from = left * kinds; to < (node + 1) * kinds; to += 1, from += 1) {
      leasts[to] = Math.min(leasts[from] ?? 0, leftSum + (leasts[from + kinds] ?? 0))
    }
  }
}
