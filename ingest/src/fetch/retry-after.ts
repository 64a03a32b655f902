/** Longest wait that an answer may ask for; a day typed as milliseconds must not stop us for a year. */
const RETRY_AFTER_MAX_MS = 3_600_000

/**
 * Milliseconds that a `Retry-After` header asks to wait (seconds or an HTTP date, RFC 9110 10.2.3), at most an
 * hour; undefined when there is none or it says nothing.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  const delayMs = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs
  if (Number.isNaN(delayMs)) return undefined
  return Math.min(Math.max(delayMs, 0), RETRY_AFTER_MAX_MS)
}
