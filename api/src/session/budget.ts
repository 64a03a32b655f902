import { Refusal } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'

const MINUTE_MS = 60_000
/** Maximum number of tracked users or addresses. One that is dropped has the whole budget again. */
const KEYS_MAX = 100_000

/** What each user, or each address, may do in a minute. */
export type Budget = {
  /** Counts one use; throws the budget's {@link Refusal} beyond it. */
  take(key: string, nowMs: number): void
  /** Returns one use that was taken. */
  giveBack(key: string): void
}

export const UNLIMITED: Budget = { take: () => undefined, giveBack: () => undefined }

/**
 * Creates a token bucket per key, for this process only: it has a capacity of the uses of one minute, and fills evenly.
 * The stored value is the instant at which a key's bucket is full again.
 */
export function minuteBudget(refusal: 'write_budget_spent' | 'session_checks_spent', perMinute: number): Budget {
  const fullAt = new LRUCache<string, number>({ max: KEYS_MAX })
  const costMs = MINUTE_MS / perMinute
  return {
    take(key, nowMs) {
      const kept = fullAt.get(key) ?? nowMs
      // A bucket never lacks more than a minute, unless the clock was set back.
      const full = kept - nowMs > MINUTE_MS ? nowMs : Math.max(kept, nowMs)
      const missingMs = full + costMs - nowMs - MINUTE_MS
      if (missingMs > 0) {
        const retryAfterSeconds = Math.ceil(missingMs / 1000)
        throw new Refusal(refusal, [String(perMinute), String(retryAfterSeconds)], { retryAfterSeconds })
      }
      fullAt.set(key, full + costMs)
    },
    giveBack(key) {
      const full = fullAt.get(key)
      if (full !== undefined) fullAt.set(key, full - costMs)
    }
  }
}
