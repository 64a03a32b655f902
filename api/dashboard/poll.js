import { Away } from './ask.js'

const EVERY_MS = 5000
/** Changes come in bursts. */
const SOON_MS = 200
/** While the service is unavailable, the interval doubles up to this. */
const AWAY_MS_MAX = 60_000

/**
 * Runs `work` every 5 seconds while the page is visible, and at once when it becomes visible. Returns a function that
 * runs it soon. Calls `onBack` after each success and `onAway` after each failure, which also lengthens the interval.
 * @param {() => Promise<unknown>} work
 * @param {{ onAway: (error: unknown, waitMs: number) => void, onBack: () => void }} callbacks
 */
export function poll(work, { onAway, onBack }) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  let isBusy = false
  let failures = 0

  /** @param {number} ms */
  const later = (ms) => {
    clearTimeout(timer)
    timer = document.hidden ? undefined : setTimeout(run, ms)
  }
  const run = async () => {
    if (isBusy) return
    isBusy = true
    clearTimeout(timer)
    let waitMs = EVERY_MS
    try {
      await work()
      failures = 0
      onBack()
    } catch (error) {
      failures += 1
      // Jitter, so that all pages do not retry at one instant.
      const spread = 0.75 + Math.random() / 2
      const retryAfterMs = error instanceof Away ? (error.retryAfterMs ?? 0) : 0
      waitMs = Math.max(retryAfterMs, Math.min(EVERY_MS * 2 ** (failures - 1), AWAY_MS_MAX) * spread)
      onAway(error, waitMs)
    } finally {
      isBusy = false
    }
    later(waitMs)
  }
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) clearTimeout(timer)
    else void run()
  })
  addEventListener('online', () => void run())
  void run()
  return () => {
    if (failures === 0) later(SOON_MS)
  }
}
