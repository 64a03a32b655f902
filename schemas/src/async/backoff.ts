import { setMaxListeners } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'

/** Delays between retries: `firstMs` after the first failure, twice as long after each further one, at most `maxMs`. */
export type Backoff = { readonly firstMs: number; readonly maxMs: number }

/** The default: a restarting engine is retried quickly, one that stays unavailable twice a minute. */
export const DEFAULT_BACKOFF: Backoff = { firstMs: 250, maxMs: 30_000 }

/** Returns the delay in milliseconds after the n-th failure in a row; n counts from 1. */
export function backoffMs({ firstMs, maxMs }: Backoff, failures: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30))
}

/**
 * Resolves after `ms` milliseconds, or as soon as `signal` aborts. Never rejects. Any number of pauses may share one
 * signal.
 */
export async function pause(ms: number, signal?: AbortSignal, { ref = true } = {}): Promise<void> {
  if (signal === undefined) return await wait(ms, undefined, { ref })
  setMaxListeners(0, signal)
  await wait(ms, undefined, { signal, ref }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
