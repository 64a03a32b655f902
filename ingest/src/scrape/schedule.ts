/** Something that runs again and again. */
export type Schedule = {
  /** When the next run is due, milliseconds since 1970; undefined while none is planned. */
  nextAtMs(): number | undefined
  /** No run begins after this. */
  stop(): void
}

/** A part of the period, so that sources with equal periods and several machines do not all ask at once. */
const JITTER_SHARE = 0.05
const JITTER_MAX_MS = 3_000

/**
 * Runs `work` at once, and then every `periodMs`, on a grid that starts now: a slow run does not push later ones
 * back. Never two at once; runs that were missed (a long one, a machine asleep) are skipped, not made up for.
 * `work` must not reject. A timer that still waits does not keep the process alive.
 */
export function schedule(periodMs: number, work: () => Promise<unknown>): Schedule {
  let dueMs = performance.now()
  let timer: NodeJS.Timeout | undefined
  let plannedMs: number | undefined
  let stopped = false
  const plan = (jitterMs: number) => {
    const waitMs = Math.max(0, dueMs + jitterMs - performance.now())
    plannedMs = Date.now() + waitMs
    timer = setTimeout(tick, waitMs)
    timer.unref()
  }
  const tick = () => {
    plannedMs = undefined
    void work().then(() => {
      dueMs = nextOnGrid(dueMs, periodMs, performance.now())
      if (!stopped) plan(Math.random() * Math.min(periodMs * JITTER_SHARE, JITTER_MAX_MS))
    })
  }
  plan(0)
  return {
    nextAtMs: () => plannedMs,
    stop() {
      stopped = true
      plannedMs = undefined
      clearTimeout(timer)
    }
  }
}

/** The first instant after `nowMs` that is a whole number of periods after `dueMs`. */
export function nextOnGrid(dueMs: number, periodMs: number, nowMs: number): number {
  return dueMs + periodMs * Math.max(1, Math.floor((nowMs - dueMs) / periodMs) + 1)
}
