/** An answer's text with its headers and the name by which the service knows it. */
export type CachedAnswer = { readonly etag: string; readonly text: string; readonly headers: Headers }

/** All kept texts together. A day of samples is about 90,000 characters, so this holds some 90 answers. */
const CHARACTERS_MAX = 8_000_000

/** The newest answers by address, as texts: each caller gets a value of its own to change. */
export class AnswerMemory {
  readonly #cached = new Map<string, CachedAnswer>()
  #characters = 0

  get(url: string): CachedAnswer | undefined {
    return this.#cached.get(url)
  }

  /** Keeps an answer in place of its predecessor; the ones kept longest ago make room. */
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
