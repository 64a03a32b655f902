/** Random numbers of one seed, the same in every run (mulberry32, Tommy Ettinger, public domain). */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed + 1, 0x9e3779b1) >>> 0
  }

  /** Position in the sequence; equal for two runs that drew the same numbers. */
  get state(): number {
    return this.#state
  }

  /** From 0 to below 1. */
  number(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let hash = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    hash ^= hash + Math.imul(hash ^ (hash >>> 7), hash | 61)
    return ((hash ^ (hash >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.number() * end)
  }

  between(first: number, last: number): number {
    return first + this.below(last - first + 1)
  }

  happens(share: number): boolean {
    return this.number() < share
  }

  oneOf<Value>(values: readonly [Value, ...Value[]]): Value {
    return values[this.below(values.length)] ?? values[0]
  }
}
