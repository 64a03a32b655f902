/**
 * Resolves or rejects as the promise does, or rejects with the signal's reason when it aborts: a log or a pipe that
 * does not answer must not delay a stop. A later outcome of the promise is ignored.
 */
export function abortable<Value>(signal: AbortSignal, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
