/**
 * Resolves or rejects as `work` does. After `ms` milliseconds it resolves with the result of `onTimeout`, or rejects
 * with its error; `work` itself continues.
 */
export async function withTimeout<Result, Late>(
  work: Promise<Result>,
  ms: number,
  onTimeout: () => Late
): Promise<Result | Late> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    return await Promise.race([work, timeout.then(onTimeout)])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Returns a signal that aborts when one of `signals` does, or with a `TimeoutError` after `ms` milliseconds.
 * The empty listener keeps the timeout's signal alive: `AbortSignal.any` holds its sources weakly, and Node 20 collects
 * an unreferenced one together with its timer (nodejs/node#57736), so the returned signal would never abort.
 */
export function abortedAfter(ms: number, ...signals: readonly AbortSignal[]): AbortSignal {
  const timeout = AbortSignal.timeout(Math.max(1, ms))
  timeout.addEventListener('abort', () => undefined, { once: true })
  return AbortSignal.any([...signals, timeout])
}
