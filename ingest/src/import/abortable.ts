/**
 * The promise's value, or a rejection with the signal's reason as soon as there is one: a log or a pipe that does not
 * answer must not hold up a stop. What the promise comes to later is dropped.
 */
export function abortable<Value>(signal: AbortSignal, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
