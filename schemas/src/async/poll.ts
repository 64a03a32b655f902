import { pause } from './backoff.js'

export type PollOptions = {
  readonly everyMs: number
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Reads repeatedly until `isDone` accepts a value or `timeoutMs` have passed, and returns the last value.
 * Rejects as `read` does, and with the signal's reason.
 */
export async function poll<Value>(
  read: () => Promise<Value>,
  isDone: (value: Value) => boolean,
  { everyMs, timeoutMs, signal = new AbortController().signal }: PollOptions
): Promise<Value> {
  const untilMs = performance.now() + timeoutMs
  for (;;) {
    const value = await read()
    if (isDone(value) || performance.now() >= untilMs) return value
    await pause(everyMs, signal)
    signal.throwIfAborted()
  }
}
