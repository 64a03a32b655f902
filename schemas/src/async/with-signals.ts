import { setMaxListeners } from 'node:events'

/**
 * Runs `work` with a controller that aborts, for the same reason, when one of `sources` does. When the work has ended,
 * nothing of it remains at the sources. On Node 20 each call of `AbortSignal.any` leaves an entry at its sources, and
 * after
 * 16.7 million it throws: use it only for sources that end with the result, or for few calls.
 */
export async function withSignals<Result>(
  sources: readonly (AbortSignal | undefined)[],
  work: (controller: AbortController) => Promise<Result>
): Promise<Result> {
  const controller = new AbortController()
  const given = sources.filter((source) => source !== undefined)
  const abort = () => controller.abort(given.find(({ aborted }) => aborted)?.reason)
  // Any number of calls may share a source.
  if (given.length > 0) setMaxListeners(0, ...given)
  for (const source of given) source.addEventListener('abort', abort)
  if (given.some(({ aborted }) => aborted)) abort()
  try {
    return await work(controller)
  } finally {
    for (const source of given) source.removeEventListener('abort', abort)
  }
}
