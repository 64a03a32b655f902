/**
 * Aborts when one of `signals` does, or with a `TimeoutError` after so many milliseconds. The signal of the time is held by its own
 * listener: `AbortSignal.any` holds its sources weakly, and Node 20 collects one that nobody else holds, timer and all
 * (nodejs/node#57736), so that whoever waits would wait for ever.
 */
export function abortedAfter(ms: number, ...signals: readonly AbortSignal[]): AbortSignal {
  const timeout = AbortSignal.timeout(Math.max(1, ms))
  timeout.addEventListener('abort', () => undefined, { once: true })
  return AbortSignal.any([...signals, timeout])
}
