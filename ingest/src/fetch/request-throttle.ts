import { pause } from '@gamenet/schemas'

/** `soon`: pages whose instants matter. `later`: thousands of pages without urgency. */
export type Urgency = 'soon' | 'later'

/** Runs one request at a time, at most at the configured rate. */
export type RequestThrottle = {
  /**
   * Runs `work` when the rate permits and all earlier work of the same urgency and all more urgent work has ended.
   * Rejects if `signal` aborts first.
   */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>, urgency?: Urgency): Promise<Result>
  /** Waits, within `work`, until the rate permits another request. */
  pause(signal: AbortSignal): Promise<void>
}

/** After this many urgent requests in a row one other request runs, so that a busy network does not starve it. */
const SOON_IN_A_ROW_MAX = 19

type QueuedRequest = { readonly signal: AbortSignal; begin(): Promise<void>; refuse(): void }

/**
 * Creates a throttle of `requestsPerSecond`, a number above 0. The queue needs no limit: each of the few runs has one
 * request in it.
 */
export function createRequestThrottle(requestsPerSecond: number): RequestThrottle {
  if (!(requestsPerSecond > 0)) throw new RangeError(`Requests per second must be above 0; got ${requestsPerSecond}.`)
  const gapMs = 1000 / requestsPerSecond
  const waiting: Record<Urgency, QueuedRequest[]> = { soon: [], later: [] }
  let nextStartMs = 0
  let soonInARow = 0
  let isRunning = false
  const untilPermitted = async (signal: AbortSignal) => {
    const waitMs = nextStartMs - performance.now()
    if (waitMs > 0) await pause(waitMs, signal)
    signal.throwIfAborted()
    nextStartMs = performance.now() + gapMs
  }
  const urgencyOfNext = (): Urgency =>
    waiting.later.length > 0 && (waiting.soon.length === 0 || soonInARow >= SOON_IN_A_ROW_MAX) ? 'later' : 'soon'
  const runAll = async () => {
    isRunning = true
    for (let first = waiting[urgencyOfNext()][0]; first !== undefined; first = waiting[urgencyOfNext()][0]) {
      const isAllowed = await untilPermitted(first.signal).then(
        () => true,
        () => false
      )
      dropAborted(waiting)
      if (!isAllowed) continue
      // A more urgent request may have arrived during the wait.
      const urgency = urgencyOfNext()
      const request = waiting[urgency].shift()
      if (request === undefined) continue
      soonInARow = urgency === 'soon' ? soonInARow + 1 : 0
      await request.begin()
    }
    isRunning = false
  }
  return {
    run: (signal, work, urgency = 'soon') =>
      new Promise((resolve, reject) => {
        const begin = () => work().then(resolve, reject)
        waiting[urgency].push({ signal, begin, refuse: () => reject(signal.reason) })
        if (!isRunning) void runAll()
      }),
    pause: untilPermitted
  }
}

function dropAborted(waiting: Record<Urgency, QueuedRequest[]>): void {
  for (const urgency of ['soon', 'later'] as const) {
    for (const request of waiting[urgency]) if (request.signal.aborted) request.refuse()
    waiting[urgency] = waiting[urgency].filter(({ signal }) => !signal.aborted)
  }
}

/** Longest accepted delay. A day given in milliseconds would otherwise pause for years. */
const RETRY_AFTER_MAX_MS = 3_600_000

/**
 * Returns the milliseconds of a `Retry-After` header (seconds or an HTTP date, RFC 9110 10.2.3), at most an hour;
 * undefined without a valid one.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  const delayMs = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs
  if (Number.isNaN(delayMs)) return undefined
  return Math.min(Math.max(delayMs, 0), RETRY_AFTER_MAX_MS)
}
