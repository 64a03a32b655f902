/** Dependencies of a schedule. */
export type Timing = {
  /** Milliseconds of a monotonic clock. */
  now(): number
  /** From 0 to below 1. */
  random(): number
  /** Calls back once after `waitMs`; the result cancels it. Does not keep the process alive. */
  after(waitMs: number, callBack: () => void): () => void
}

/** Share of the period, so that sources with equal periods and several machines do not all send requests at once. */
const OFFSET_SHARE = 0.05
const OFFSET_MAX_MS = 3_000

/**
 * Runs `work` at once, and then every `periodMs` on a grid: start + offset + n × period, so that slow or failed runs do
 * not delay later ones. Never two at once; missed runs (a long run, a sleeping machine) are skipped. `work` must not
 * reject. After a call of the returned function no run starts.
 *
 * The offset is drawn once. A new one per run would spread load no better and make scrape instants irregular: on 50
 * million counts that took 1 byte per sample, where equal distances take 0.01.
 */
export function schedule(periodMs: number, work: () => Promise<unknown>, timing: Timing = REAL): () => void {
  const startMs = timing.now()
  let dueMs = startMs + timing.random() * Math.min(periodMs * OFFSET_SHARE, OFFSET_MAX_MS)
  let cancel = () => {}
  let stopped = false
  const plan = (atMs: number) => {
    cancel = timing.after(Math.max(0, atMs - timing.now()), tick)
  }
  const tick = () => {
    // A rejection is a defect, which the process reports; the others of its kind continue.
    void work().finally(() => {
      dueMs = nextOnGrid(dueMs, periodMs, timing.now())
      if (!stopped) plan(dueMs)
    })
  }
  plan(startMs)
  return () => {
    stopped = true
    cancel()
  }
}

/** Returns the first instant after `nowMs` that is a whole number of periods, at least one, after `dueMs`. */
export function nextOnGrid(dueMs: number, periodMs: number, nowMs: number): number {
  return dueMs + periodMs * Math.max(1, Math.floor((nowMs - dueMs) / periodMs) + 1)
}

const REAL: Timing = {
  now: () => performance.now(),
  random: Math.random,
  after(waitMs, callBack) {
    const timer = setTimeout(callBack, waitMs)
    timer.unref()
    return () => clearTimeout(timer)
  }
}
