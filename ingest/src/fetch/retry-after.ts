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
