import { Failure, type LogRecord, readSealedValue } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'

/** Seal keys by the numbers of their people; deleted ones are missing. */
export type SealKeys = ReadonlyMap<number, Uint8Array>

/** People have neither a key nor an erasure: without those, their events would be lost. */
export function keysUnknown([first, ...others]: readonly number[]): Failure {
  const more = others.length === 0 ? '' : ` and ${others.length} others`
  return new Failure(
    'keys_unknown',
    `PostgreSQL has neither the key nor the erasure of person ${first}${more}, whose events are in the log: it is ` +
      `older than the log, or another one. Restore a backup that has them. Without one, start with --accept-older: ` +
      `these events stay lost.`
  )
}

/**
 * Lifetime of a cached key: until then it may decrypt records, and the storing of decrypted rows may begin. An erasure
 * that deletes a key waits this long before it reads the end of the log and waits for running stores. No later store
 * contains rows that the key decrypted, so deleted rows do not come back.
 */
export const SEAL_KEY_CACHE_MS = 10_000
/** About 200 bytes each. */
const CACHED_MAX = 50_000

/** Caches seal keys for a limited time. */
export class SealKeyCache {
  readonly #ask: (topic: string, people: readonly number[]) => Promise<SealKeys>
  readonly #now: () => number
  readonly #cache: LRUCache<number, { readonly key: Uint8Array | undefined }>

  constructor(ask: (topic: string, people: readonly number[]) => Promise<SealKeys>, now = () => performance.now()) {
    this.#ask = ask
    this.#now = now
    this.#cache = new LRUCache({
      // Declared as a size, memory is allocated on demand; declared as a number of keys, 10 ms and 3 MB at once.
      maxSize: CACHED_MAX,
      sizeCalculation: () => 1,
      ttl: SEAL_KEY_CACHE_MS,
      ttlResolution: 0,
      perf: { now }
    })
  }

  /** Returns the keys of these people; requests those that are not cached. */
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

  /** Requests the keys of these people. */
  async fetch(topic: string, people: readonly number[]): Promise<SealKeys> {
    // A key may be deleted while the answer is on its way, so its lifetime begins before the request.
    const start = this.#now()
    const keys = await this.#ask(topic, people)
    for (const person of people) this.#cache.set(person, { key: keys.get(person) }, { start })
    return keys
  }
}

/** Returns the subjects of records. */
export function peopleOf(records: readonly LogRecord[]): Set<number> {
  return new Set(records.flatMap(({ value }) => readSealedValue(value)?.people ?? []))
}
