/** The text of an answer with its headers and its ETag. */
export type CachedAnswer = { readonly etag: string; readonly text: string; readonly headers: Headers }

/**
 * Maximum number of characters of all cached answers. A day of samples has about 90,000, so this holds some 90 answers.
 */
const CHARACTERS_MAX = 8_000_000

/** The newest answers by address, as texts: each caller gets a separate value that it may change. */
export class AnswerMemory {
  readonly #cached = new Map<string, CachedAnswer>()
  #characters = 0

  get(url: string): CachedAnswer | undefined {
    return this.#cached.get(url)
  }

  /** Caches an answer instead of its predecessor; evicts the oldest ones if the cache is full. */
  keep(url: string, answer: CachedAnswer): void {
    this.#drop(url)
    this.#cached.set(url, answer)
    this.#characters += sizeOf(url, answer)
    for (const oldest of this.#cached.keys()) {
      if (this.#characters <= CHARACTERS_MAX) return
      this.#drop(oldest)
    }
  }

  #drop(url: string): void {
    const cached = this.#cached.get(url)
    if (cached === undefined) return
    this.#cached.delete(url)
    this.#characters -= sizeOf(url, cached)
  }
}

function sizeOf(url: string, { etag, text }: CachedAnswer): number {
  return url.length + etag.length + text.length
}
