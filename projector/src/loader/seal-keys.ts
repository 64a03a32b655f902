import { type LogRecord, readSealedValue, type SealKeyOf } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'

/** The seal keys of people by their numbers; those that were thrown away are missing. */
export type SealKeys = ReadonlyMap<number, Uint8Array>

/**
 * For so long after a key was asked for it may open what is read. Whoever throws a key away waits so long before looking
 * where the log ends: what is appended behind that is then never opened, so that rows deleted afterwards do not come back.
 */
export const SEAL_KEYS_KEPT_MS = 10_000
/** About 200 bytes each. */
const KEPT_MAX = 50_000

/** The seal keys of the reading side: those of a batch are there before it is opened. */
export class KeptSealKeys {
  readonly #ask: (topic: string, people: readonly number[]) => Promise<SealKeys>
  readonly #now: () => number
  readonly #kept: LRUCache<number, { readonly key: Uint8Array | undefined }>

  constructor(ask: (topic: string, people: readonly number[]) => Promise<SealKeys>, now = () => performance.now()) {
    this.#ask = ask
    this.#now = now
    this.#kept = new LRUCache({
      // Given as a size, room is taken as it is used: given as a number of keys, 10 ms and 3 MB at once.
      maxSize: KEPT_MAX,
      sizeCalculation: () => 1,
      ttl: SEAL_KEYS_KEPT_MS,
      ttlResolution: 0,
      perf: { now }
    })
  }

  /** The keys of all whom these records, just read, are about. */
  async of(topic: string, records: readonly LogRecord[]): Promise<SealKeyOf> {
    const keys = new Map<number, Uint8Array | undefined>()
    const unknown: number[] = []
    for (const person of new Set(records.flatMap(({ value }) => readSealedValue(value)?.people ?? []))) {
      const kept = this.#kept.get(person)
      if (kept === undefined) unknown.push(person)
      else keys.set(person, kept.key)
    }
    if (unknown.length > 0) {
      // A key may be thrown away while it is on its way here, so its time begins before.
      const start = this.#now()
      const answered = await this.#ask(topic, unknown)
      for (const person of unknown) {
        const key = answered.get(person)
        keys.set(person, key)
        this.#kept.set(person, { key }, { start })
      }
    }
    return (person) => keys.get(person)
  }
}
