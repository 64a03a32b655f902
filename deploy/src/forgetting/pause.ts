import { setTimeout as wait } from 'node:timers/promises'

/** Rejects with the signal's own reason when it is aborted meanwhile. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => signal.throwIfAborted())
}
