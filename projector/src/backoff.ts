import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

/** How long to wait between tries: twice as long each time, from `firstMs` to at most `mostMs`. */
export type Backoff = { readonly firstMs: number; readonly mostMs: number }

/** A quarter of a second at first, half a minute at most: an engine that restarts is found again at once. */
export const DEFAULT_BACKOFF: Backoff = { firstMs: 250, mostMs: 30_000 }

/** Milliseconds to wait after the n-th failure in a row, n from 1. */
export function backoffMs(backoff: Backoff, failures: number): number {
  return Math.min(backoff.mostMs, backoff.firstMs * 2 ** Math.min(failures - 1, 30))
}

/** Waits, but no longer than until `signal` aborts; never rejects. Many may wait by one signal: while tables are away, every topic does. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  setMaxListeners(0, signal)
  await delay(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
