import { type LogRecord, readSealedValue } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'

/** The seal keys of people by their numbers; those that were thrown away are missing. */
export type SealKeys = ReadonlyMap<number, Uint8Array>

/**
 * For so long after a key was asked for it may open what is read, and what it opened may begin to be stored. An erasure that destroys a
 * key waits so long before looking where the log ends, and for the stores under way: nothing is stored behind that which
 * the key opened, so that rows deleted afterwards do not come back.
 */
export const SEAL_KEY_CACHE_MS = 10_000
/** About 200 bytes each. */
const CACHED_MAX = 50_000

/** Seal keys that were asked for, each for its time. */
export class SealKeyCache {
  readonly #ask: (topic: string, people: readonly number[]) => Promise<SealKeys>
  readonly #now: () => number
  readonly #cache: LRUCache<number, { readonly key: Uint8Array | undefined }>

  constructor(ask: (topic: string, people: readonly number[]) => Promise<SealKeys>, now = () => performance.now()) {
    this.#ask = ask
    this.#now = now
    this.#cache = new LRUCache({
      // Given as a size, room is taken as it is used: given as a number of keys, 10 ms and 3 MB at once.
      maxSize: CACHED_MAX,
      sizeCalculation: () => 1,
      ttl: SEAL_KEY_CACHE_MS,
      ttlResolution: 0,
      perf: { now }
    })
  }

  /** The keys of these people, asked for unless they are kept. */
  async of(topic: string, people: Iterable<number>): Promise<SealKeys> {
    const keys = new Map<number, Uint8Array>()
    const unknown: number[] = []
    for (const person of people) {
      const kept = this.#cache.get(person)
      if (kept === undefined) unknown.push(person)
      else if (kept.key !== undefined) keys.set(person, kept.key)
    }
    return unknown.length === 0 ? keys : new Map([...keys, ...(await this.fetch(topic, unknown))])
  }

  /** The same, asked for. */
  async fetch(topic: string, people: readonly number[]): Promise<SealKeys> {
    // A key may be thrown away while it is on its way here, so its time begins before.
    const start = this.#now()
    const keys = await this.#ask(topic, people)
    for (const person of people) this.#cache.set(person, { key: keys.get(person) }, { start })
    return keys
  }
}

/** The subjects of records. */
export function peopleOf(records: readonly LogRecord[]): Set<number> {
  return new Set(records.flatMap(({ value }) => readSealedValue(value)?.people ?? []))
}
