import { Refusal } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'

const MINUTE_MS = 60_000
/** Maximum number of tracked users. A user who is dropped has the whole budget again. */
const USERS_MAX = 100_000

/** Counts a write of this user; throws a {@link Refusal} `write_budget_spent` beyond the budget. */
export type WriteBudget = (userKey: string, nowMs: number) => void

export const UNLIMITED: WriteBudget = () => undefined

/**
 * Creates a token bucket per user, for this process only: it has a capacity of the writes of one minute, and fills evenly.
 * The stored value is the instant at which a user's bucket is full again.
 */
export function writeBudget(perMinute: number): WriteBudget {
  const fullAt = new LRUCache<string, number>({ max: USERS_MAX })
  const costMs = MINUTE_MS / perMinute
  return (userKey, nowMs) => {
    const kept = fullAt.get(userKey) ?? nowMs
    // A bucket never lacks more than a minute, unless the clock was set back.
    const full = kept - nowMs > MINUTE_MS ? nowMs : Math.max(kept, nowMs)
    const missingMs = full + costMs - nowMs - MINUTE_MS
    if (missingMs > 0) {
      const retryAfterSeconds = Math.ceil(missingMs / 1000)
      throw new Refusal('write_budget_spent', [String(perMinute), String(retryAfterSeconds)], { retryAfterSeconds })
    }
    fullAt.set(userKey, full + costMs)
  }
}
