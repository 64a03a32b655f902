import { setTimeout as delay } from 'node:timers/promises'

/** `soon`: pages whose instants matter. `later`: pages of which there are thousands, and which can wait. */
export type Urgency = 'soon' | 'later'

/** Lets one request run at a time, and starts them no faster than the rate that upstream may be asked at. */
export type RequestTurns = {
  /**
   * Runs `work` when the rate allows and everything is done that was asked for earlier with the same urgency, or is more
   * urgent. Rejects if `signal` aborts before.
   */
  take<Result>(signal: AbortSignal, work: () => Promise<Result>, urgency?: Urgency): Promise<Result>
  /** Waits, within a turn, until the rate allows one request more. */
  pause(signal: AbortSignal): Promise<void>
}

/** One in so many turns is for what can wait, so that a network that is busy all the time does not stop it for ever. */
const SOON_IN_A_ROW_MAX = 19

type Turn = { readonly signal: AbortSignal; begin(): Promise<void>; refuse(): void }

/** `requestsPerSecond` above 0, fractions allowed. The queue is as long as there are runs, which are few. */
export function createRequestTurns(requestsPerSecond: number): RequestTurns {
  if (!(requestsPerSecond > 0)) {
    throw new RangeError(`Requests per second must be above 0; got ${requestsPerSecond}.`)
  }
  const gapMs = 1000 / requestsPerSecond
  const waiting: Record<Urgency, Turn[]> = { soon: [], later: [] }
  let nextStartMs = 0
  let soonInARow = 0
  let isRunning = false
  const pause = async (signal: AbortSignal) => {
    const waitMs = nextStartMs - performance.now()
    if (waitMs > 0) await delay(waitMs, undefined, { signal })
    nextStartMs = performance.now() + gapMs
  }
  const urgencyOfNext = (): Urgency =>
    waiting.later.length > 0 && (waiting.soon.length === 0 || soonInARow >= SOON_IN_A_ROW_MAX) ? 'later' : 'soon'
  const run = async () => {
    isRunning = true
    for (let first = waiting[urgencyOfNext()][0]; first !== undefined; first = waiting[urgencyOfNext()][0]) {
      const isAllowed = await pause(first.signal).then(
        () => true,
        () => false
      )
      dropAborted(waiting)
      if (!isAllowed) continue
      // Whoever came while the rate had to be waited for may be more urgent.
      const urgency = urgencyOfNext()
      const turn = waiting[urgency].shift()
      if (turn === undefined) continue
      soonInARow = urgency === 'soon' ? soonInARow + 1 : 0
      await turn.begin()
    }
    isRunning = false
  }
  return {
    take: (signal, work, urgency = 'soon') =>
      new Promise((resolve, reject) => {
        const begin = () => work().then(resolve, reject)
        waiting[urgency].push({ signal, begin, refuse: () => reject(signal.reason) })
        if (!isRunning) void run()
      }),
    pause
  }
}

function dropAborted(waiting: Record<Urgency, Turn[]>): void {
  for (const urgency of ['soon', 'later'] as const) {
    for (const turn of waiting[urgency]) if (turn.signal.aborted) turn.refuse()
    waiting[urgency] = waiting[urgency].filter(({ signal }) => !signal.aborted)
  }
}
