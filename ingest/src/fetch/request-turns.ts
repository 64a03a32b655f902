import { setTimeout as delay } from 'node:timers/promises'

/** Lets one request run at a time, and starts them no faster than the rate that upstream may be asked at. */
export type RequestTurns = {
  /** Runs `work` when everything asked for earlier is done and the rate allows. Rejects if `signal` aborts before. */
  take<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>
  /** Waits, within a turn, until the rate allows one request more. */
  pause(signal: AbortSignal): Promise<void>
}

/** `requestsPerSecond` above 0, fractions allowed. The queue is as long as there are runs, which are few. */
export function createRequestTurns(requestsPerSecond: number): RequestTurns {
  if (!(requestsPerSecond > 0)) {
    throw new RangeError(`Requests per second must be above 0; got ${requestsPerSecond}.`)
  }
  const gapMs = 1000 / requestsPerSecond
  let last: Promise<unknown> = Promise.resolve()
  let nextStartMs = 0
  const pause = async (signal: AbortSignal) => {
    const waitMs = nextStartMs - performance.now()
    if (waitMs > 0) await delay(waitMs, undefined, { signal })
    nextStartMs = performance.now() + gapMs
  }
  return {
    async take(signal, work) {
      const turn = last.then(async () => {
        signal.throwIfAborted()
        await pause(signal)
        return await work()
      })
      last = turn.catch(() => undefined)
      return await turn
    },
    pause
  }
}
