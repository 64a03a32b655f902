/** An answer with everything around it. */
export type Result<Answer> = {
  readonly data: Answer
  /** Of the answer; of one that the service did not send again, those that came with it. */
  readonly headers: Headers
  /** Where the next page of a feed begins: the parameter `after` of a later call. Undefined where pages have none. */
  readonly cursor: string | undefined
  /** Asks for the next page; resolves with undefined when this is the last. A feed of changes has always a next one. */
  next(): Promise<Result<Answer> | undefined>
}

/** What {@link Call.pages} does at the end of a feed. */
export type PageOptions = {
  /** Milliseconds until it asks again for what was recorded since; without it the pages end there. */
  readonly followMs?: number | undefined
}

/**
 * A request on its way. `await` gives the data of the answer, `result()` the data with its headers and pages, and
 * `for await (const page of call.pages())` one page after the other.
 */
export class Call<Answer> implements Promise<Answer> {
  readonly [Symbol.toStringTag] = 'Call'
  readonly #result: Promise<Result<Answer>>
  readonly #signal: AbortSignal | undefined

  constructor(result: Promise<Result<Answer>>, signal: AbortSignal | undefined) {
    this.#result = result
    this.#signal = signal
  }

  /** The answer with its headers and its cursor. */
  result(): Promise<Result<Answer>> {
    return this.#result
  }

  /**
   * The pages from this one on that are not empty. With `followMs` those of a feed never end; the signal of the call
   * ends them with its reason.
   */
  async *pages({ followMs }: PageOptions = {}): AsyncGenerator<Result<Answer>, void, undefined> {
    let page: Result<Answer> | undefined = await this.#result
    while (page !== undefined) {
      const isEmpty = Array.isArray(page.data) && page.data.length === 0
      if (!isEmpty) yield page
      else if (followMs === undefined) return
      else await delay(followMs, this.#signal)
      page = await page.next()
    }
  }

  // biome-ignore lint/suspicious/noThenProperty: a call is a promise of its data
  then<Fulfilled = Answer, Rejected = never>(
    onfulfilled?: ((data: Answer) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onrejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null
  ): Promise<Fulfilled | Rejected> {
    return this.#result.then(({ data }) => data).then(onfulfilled, onrejected)
  }

  catch<Rejected = never>(
    onrejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null
  ): Promise<Answer | Rejected> {
    return this.then(undefined, onrejected)
  }

  finally(onfinally?: (() => void) | null): Promise<Answer> {
    return this.then().finally(onfinally)
  }
}

/** Resolves after `ms`; rejects with the signal's reason when it aborts before. */
export function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
}
