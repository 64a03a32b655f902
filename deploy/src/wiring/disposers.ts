/** What is made on the way, and how each is undone: in the reverse order. */
export class Disposers {
  readonly #closers: (() => Promise<unknown> | unknown)[] = []

  add<Part>(part: Part, close: (part: Part) => Promise<unknown> | unknown): Part {
    this.#closers.push(() => close(part))
    return part
  }

  /** Closes everything, also behind one that fails; then rejects with the failures. */
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
