import { createHash, randomBytes } from 'node:crypto'

const KEY_BYTES = 32
const SESSIONS_MAX = 10_000

/** The sessions of the demo auth service: who each key is, until it expires. Keys are kept as hashes alone. */
export class DemoSessions<Person> {
  readonly #byHash = new Map<string, { readonly person: Person; readonly expiresMs: number }>()
  readonly #lifeMs: number
  readonly #now: () => number

  constructor({ lifeMs, now }: { readonly lifeMs: number; readonly now: () => number }) {
    this.#lifeMs = lifeMs
    this.#now = now
  }

  /** Begins a session and gives its key. Past 10,000 sessions the oldest ends. */
  begin(person: Person): string {
    const key = randomBytes(KEY_BYTES).toString('base64url')
    const [oldest] = this.#byHash.keys()
    if (this.#byHash.size >= SESSIONS_MAX && oldest !== undefined) this.#byHash.delete(oldest)
    this.#byHash.set(hashOf(key), { person, expiresMs: this.#now() + this.#lifeMs })
    return key
  }

  /** Whose key this is; undefined when nobody's, or no longer. */
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
