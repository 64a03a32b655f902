/** Collects cleanup functions and runs them in reverse order. */
export class Disposers {
  readonly #closers: (() => Promise<unknown> | unknown)[] = []

  add<Value>(value: Value, close: (value: Value) => Promise<unknown> | unknown): Value {
    this.#closers.push(() => close(value))
    return value
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
