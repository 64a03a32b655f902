/**
 * A row of places, some of them taken, each taken one with a step: running sums, and the least of them, in logarithmic time
 * whatever changes. (A board of 100,000 entries changes 40,000 times; walking it each time would take an hour.)
 */
export class RankTree {
  readonly #leaves: number
  readonly #sums: Float64Array
  /** Least running sum among the taken places below a node, from the node's own beginning; Infinity where none is. */
  readonly #leasts: Float64Array

  constructor(places: number) {
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(places, 1)))
    this.#sums = new Float64Array(2 * this.#leaves)
    this.#leasts = new Float64Array(2 * this.#leaves).fill(Number.POSITIVE_INFINITY)
  }

  /** Takes a place, with its step. */
  take(place: number, step: number): void {
    this.#set(place, step, step)
  }

  /** Leaves a place. */
  leave(place: number): void {
    this.#set(place, 0, Number.POSITIVE_INFINITY)
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

  /** The first of the taken places with the least running sum; undefined when none is taken. */
  firstLeast(): { readonly place: number; readonly sum: number } | undefined {
    const sum = this.#leasts[1] ?? Number.POSITIVE_INFINITY
    if (sum === Number.POSITIVE_INFINITY) return undefined
    let node = 1
    while (node < this.#leaves) {
      const left = 2 * node
      const ofLeft = this.#leasts[left] ?? 0
      const ofRight = (this.#sums[left] ?? 0) + (this.#leasts[left + 1] ?? 0)
      node = ofLeft <= ofRight ? left : left + 1
    }
    return { place: node - this.#leaves, sum }
  }

  #set(place: number, sum: number, least: number): void {
    let node = place + this.#leaves
    this.#sums[node] = sum
    this.#leasts[node] = least
    for (node >>= 1; node >= 1; node >>= 1) {
      const left = 2 * node
      const leftSum = this.#sums[left] ?? 0
      this.#sums[node] = leftSum + (this.#sums[left + 1] ?? 0)
      this.#leasts[node] = Math.min(this.#leasts[left] ?? 0, leftSum + (this.#leasts[left + 1] ?? 0))
    }
  }
}
