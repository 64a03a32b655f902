/** Collects cleanup functions and runs them in reverse order. */
export class Disposers {
  readonly #closers: (() => Promise<unknown> | unknown)[] = []

  add<Part>(part: Part, close: (part: Part) => Promise<unknown> | unknown): Part {
    this.#closers.push(() => close(part))
    return part
  }

  /** Closes everything, even after a failure; then rejects with the failures. */
  async close(): Promise<void> {
    const failures: unknown[] = []
    for (let closer = this.#closers.pop(); closer !== undefined; closer = this.#closers.pop()) {
      try {
        await closer()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0)
      throw new AggregateError(failures, `The service did not close cleanly: ${failures.join('; ')}`)
  }
}
