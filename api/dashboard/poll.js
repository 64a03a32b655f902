const EVERY_MS = 5000
/** While the service is away the distance doubles up to this. */
const AWAY_MS_MAX = 60_000

/**
 * Does `work` about every 5 seconds while the page can be seen, and at once when it can be seen again. When `work`
 * fails, `onAway(error, waitMs)` is told and the distance grows; `onBack()` is told of every success.
 */
export function poll(work, { onAway, onBack }) {
  let timer
  let isBusy = false
  let failures = 0

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
      // Spread, so that pages that lost the service together do not all come back in one moment.
      const spread = 0.75 + Math.random() / 2
      waitMs = Math.max(error.retryAfterMs ?? 0, Math.min(EVERY_MS * 2 ** (failures - 1), AWAY_MS_MAX) * spread)
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
}
