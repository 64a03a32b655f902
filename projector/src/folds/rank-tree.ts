/**
 * A row of places, some of them taken, each taken one with a step: running sums, and the least of them, in logarithmic time
 * whatever changes. (A board of 100,000 entries changes 40,000 times; walking it each time would take an hour.) Taken places
 * may bear marks, and the least among those with a mark is found as fast.
 */
export class RankTree {
  readonly #leaves: number
  readonly #sums: Float64Array
  /**
   * Least running sum among the places below a node, from the node's own beginning; Infinity where none is. The first
   * array is about all taken places, the others about those with each mark.
   */
  readonly #leasts: readonly Float64Array[]

  constructor(places: number, marks = 0) {
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(places, 1)))
    this.#sums = new Float64Array(2 * this.#leaves)
    this.#leasts = Array.from({ length: 1 + marks }, () =>
      new Float64Array(2 * this.#leaves).fill(Number.POSITIVE_INFINITY)
    )
  }

  /** Takes a place, or takes it anew: with its step, and bit by bit the marks that it bears. */
  take(place: number, step: number, marks = 0): void {
    this.#put(place, step, marks)
    for (let node = (place + this.#leaves) >> 1; node >= 1; node >>= 1) this.#join(node)
  }

  /** Takes many places at once: `[place, step, marks]`. */
  takeAll(taken: Iterable<readonly [place: number, step: number, marks: number]>): void {
    for (const [place, step, marks] of taken) this.#put(place, step, marks)
    for (let node = this.#leaves - 1; node >= 1; node -= 1) this.#join(node)
  }

  /** Leaves a place. */
  leave(place: number): void {
    const leaf = place + this.#leaves
    this.#sums[leaf] = 0
    for (const leasts of this.#leasts) leasts[leaf] = Number.POSITIVE_INFINITY
    for (let node = leaf >> 1; node >= 1; node >>= 1) this.#join(node)
  }

  /** The sum of the steps of the places before this one. */
  sumBefore(place: number): number {
    let sum = 0
    for (let node = place + this.#leaves; node > 1; node >>= 1) {
      if (node % 2 === 1) sum += this.#sums[node - 1] ?? 0
    }
    return sum
  }

  /** The sum of the steps up to this place, its own too. */
  sumThrough(place: number): number {
    return this.sumBefore(place) + (this.#sums[place + this.#leaves] ?? 0)
  }

  /** The first of the taken places with the least running sum, of those that bear a mark where one is given. */
  firstLeast(mark?: number): { readonly place: number; readonly sum: number } | undefined {
    const leasts = this.#leasts[mark === undefined ? 0 : 1 + mark]
    const sum = leasts?.[1] ?? Number.POSITIVE_INFINITY
    if (leasts === undefined || sum === Number.POSITIVE_INFINITY) return undefined
    let node = 1
    while (node < this.#leaves) {
      const left = 2 * node
      const ofLeft = leasts[left] ?? 0
      const ofRight = (this.#sums[left] ?? 0) + (leasts[left + 1] ?? 0)
      node = ofLeft <= ofRight ? left : left + 1
    }
    return { place: node - this.#leaves, sum }
  }

  /** The taken places with a running sum of at most `most`, in their order. */
  *placesWithin(most: number, node = 1, before = 0): Generator<number> {
    if (before + (this.#leasts[0]?.[node] ?? 0) > most) return
    if (node >= this.#leaves) {
      yield node - this.#leaves
      return
    }
    yield* this.placesWithin(most, 2 * node, before)
    yield* this.placesWithin(most, 2 * node + 1, before + (this.#sums[2 * node] ?? 0))
  }

  #put(place: number, step: number, marks: number): void {
    const leaf = place + this.#leaves
    this.#sums[leaf] = step
    for (const [n, leasts] of this.#leasts.entries()) {
      leasts[leaf] = n === 0 || (marks >> (n - 1)) % 2 === 1 ? step : Number.POSITIVE_INFINITY
    }
  }

  #join(node: number): void {
    const left = 2 * node
    const leftSum = this.#sums[left] ?? 0
    this.#sums[node] = leftSum + (this.#sums[left + 1] ?? 0)
    // No iterator: this is the innermost loop of a fold.
    for (let n = 0; n < this.#leasts.length; n += 1) {
      const leasts = this.#leasts[n]
      if (leasts !== undefined) leasts[node] = Math.min(leasts[left] ?? 0, leftSum + (leasts[left + 1] ?? 0))
    }
  }
}
