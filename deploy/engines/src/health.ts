import { setMaxListeners } from 'node:events'
import { pause, Refusal, withSignals, withTimeout } from '@gamenet/schemas'

/*
 * away   a server that is silent: it was sent a cheap statement, or a connection, and nothing came back for seconds.
 *        A server that refuses or fails is not away: each statement learns that at once by itself
 */

/** Pause between two probes, and the longest silence of a server that counts as present. */
const PAUSE_MS = 1000
const SILENCE_MS = 3500
/** Begins when the silence has passed: a process that was stopped reads its replies first. */
const GRACE_MS = 500
/** For clients with a limit of their own, which would look like a reply before the verdict. */
export const PROBE_MS_MAX = SILENCE_MS + 2 * GRACE_MS
const RETRY_SECONDS = 5

export type HealthTimes = { readonly pauseMs?: number; readonly silenceMs?: number }

/** Whether a server replies. While it is away, callers that should not wait are refused with `engine_away`. */
export type Health = {
  /**
   * Aborted, with an `engine_away`, while the server is away; another signal when it is back. The first use begins the
   * probes.
   */
  readonly signal: AbortSignal
  /** Ends the probes. */
  close(): void
}

/**
 * Watches a server by one probe at a time. A probe settles when the server replies, whatever the reply, or when its
 * signal aborts: the next one should not wait behind it.
 * @param name the server, as the beginning of "… cannot be reached"
 */
export function watchHealth(
  name: string,
  probe: (signal: AbortSignal) => Promise<unknown>,
  { pauseMs = PAUSE_MS, silenceMs = SILENCE_MS }: HealthTimes = {}
): Health {
  const closing = new AbortController()
  let present = newPresence()
  const look = (): Promise<void> =>
    withSignals([closing.signal], async (giveUp) => {
      const reply = probe(giveUp.signal).then(
        () => true,
        () => true
      )
      const isThere = await withTimeout(reply, silenceMs, () => withTimeout(reply, GRACE_MS, () => false))
      giveUp.abort()
      if (!isThere) present.abort(new Refusal('engine_away', [name], { retryAfterSeconds: RETRY_SECONDS }))
      else if (present.signal.aborted) present = newPresence()
    })
  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await look()
      await pause(pauseMs, closing.signal, { ref: false })
    }
  }
  let isWatched = false
  return {
    get signal() {
      if (!isWatched) void run()
      isWatched = true
      return present.signal
    },
    close: () => closing.abort()
  }
}

/** Any number of statements listen to its signal. */
function newPresence(): AbortController {
  const presence = new AbortController()
  setMaxListeners(0, presence.signal)
  return presence
}
