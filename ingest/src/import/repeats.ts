import type { Importable } from './importable.js'

/** Number of keys that are remembered, about 60 MB; after them it starts again with none. */
const KEYS_MAX = 400_000

/** Counts the events of one file that replace another one of the same file. */
export class Repeats {
  readonly #target: Importable
  /** The state of each event so far; undefined once another one was seen. */
  readonly #seen = new Map<string, string | undefined>()
  #count = 0

  constructor(target: Importable) {
    this.#target = target
  }

  add(event: unknown): void {
    const { topic, sameAs, stateOf } = this.#target
    const key = sameAs?.(event as never) ?? `${topic.key(event)} ${topic.instant(event)}`
    const state = stateOf?.(event as never) ?? ''
    if (!this.#seen.has(key)) {
      if (this.#seen.size >= KEYS_MAX) this.#seen.clear()
      this.#seen.set(key, state)
    } else if (stateOf === undefined) this.#count += 1
    else if (![state, undefined].includes(this.#seen.get(key))) {
      this.#count += 1
      this.#seen.set(key, undefined)
    }
  }

  /** Sentences for the report. */
  notes(): string[] {
    const one = this.#count === 1
    if (this.#count === 0) return []
    if (this.#target.stateOf === undefined)
      return [
        `${this.#count} ${one ? 'row meets' : 'rows meet'} an instant of another row; of such rows the last one counts`
      ]
    const entries = one ? '1 entry has' : `${this.#count} entries have`
    return [`${entries} several states at one instant; the best one counts, and a removal counts before it`]
  }
}
