/** An address that answers as an earlier server again within this time has several behind it. */
const RETURN_MS = 60_000

/** What an answer says about the server of an address. */
export type Seen = 'same' | 'replaced' | 'several'

/** Recognises by their identities which servers answer at one address: their names, or their UUIDs. */
export class Identity {
  #current: string | undefined
  #left: { readonly name: string; readonly at: number } | undefined
  #several: { readonly names: string; readonly until: number } | undefined
  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The two servers that answered in turn during the last minute. */
  get several(): string | undefined {
    return this.#several !== undefined && this.#now() < this.#several.until ? this.#several.names : undefined
  }

  see(name: string): Seen {
    const before = this.#current
    this.#current = name
    if (before === undefined || before === name) return 'same'
    const now = this.#now()
    const isBack = this.#left?.name === name && now - this.#left.at < RETURN_MS
    this.#left = { name: before, at: now }
    if (!isBack) return 'replaced'
    this.#several = { names: [before, name].toSorted().join(' and '), until: now + RETURN_MS }
    return 'several'
  }
}
