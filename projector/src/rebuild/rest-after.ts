import { backoffMs, DEFAULT_BACKOFF, pause } from '@gamenet/schemas'

/** Waits after a failure, the longer the more there were. Ends early when the signal aborts; never rejects. */
export async function restAfter(failures: number, signal: AbortSignal): Promise<void> {
  await pause(backoffMs(DEFAULT_BACKOFF, failures), signal).catch(() => undefined)
}
