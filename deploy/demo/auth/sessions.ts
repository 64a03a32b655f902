import { createHash, randomBytes } from 'node:crypto'

const KEY_BYTES = 32
const SESSIONS_MAX = 10_000

/** The sessions of the demo auth service: the person of each key, until it expires. Only hashes of keys are stored. */
export class DemoSessions<Person> {
  readonly #byHash = new Map<string, { readonly person: Person; readonly expiresMs: number }>()
  readonly #lifeMs: number
  readonly #now: () => number

  constructor({ lifeMs, now }: { readonly lifeMs: number; readonly now: () => number }) {
    this.#lifeMs = lifeMs
    this.#now = now
  }

  /** Begins a session and returns its key. Beyond 10,000 sessions the oldest one ends. */
  begin(person: Person): string {
    const key = randomBytes(KEY_BYTES).toString('base64url')
    const [oldest] = this.#byHash.keys()
    if (this.#byHash.size >= SESSIONS_MAX && oldest !== undefined) this.#byHash.delete(oldest)
    this.#byHash.set(hashOf(key), { person, expiresMs: this.#now() + this.#lifeMs })
    return key
  }

  /** Returns the person of a key; undefined if it is unknown or expired. */
  personOf(key: string): Person | undefined {
    const session = this.#byHash.get(hashOf(key))
    return session !== undefined && this.#now() < session.expiresMs ? session.person : undefined
  }

  end(key: string): void {
    this.#byHash.delete(hashOf(key))
  }

  endAll(): void {
    this.#byHash.clear()
  }
}

function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url')
}
