/*
 * Upstream shows a time either as text, `MM:SS.mmm`, or as a raw score that rises as the time falls: 2147483647 minus
 * the milliseconds.
 */
const TIME_TEXT = /^(\d{1,4}):([0-5]\d)\.(\d{3})$/
const RAW_TIME_ZERO = 2_147_483_647
const RAW_TIME_MAX_MS = 3_600_000
const MINUTE_MS = 60_000

/** Returns the milliseconds of a time text, `M:SS.mmm`; undefined for other text. */
export function millisecondsOfTime(text: string): number | undefined {
  const match = TIME_TEXT.exec(text)
  if (match === null) return undefined
  return Number(match[1]) * MINUTE_MS + Number(match[2]) * 1000 + Number(match[3])
}

/** Returns the milliseconds of a raw score that is a time of at most an hour; undefined for other text. */
export function millisecondsOfRawScore(text: string): number | undefined {
  if (!/^\d{10}$/.test(text)) return undefined
  const ms = RAW_TIME_ZERO - Number(text)
  return ms >= 0 && ms <= RAW_TIME_MAX_MS ? ms : undefined
}

/** Returns the text of a time in milliseconds, `M:SS.mmm`; minutes are not carried into hours. */
export function timeText(ms: number): string {
  const minutes = Math.floor(ms / MINUTE_MS)
  const seconds = String(Math.floor(ms / 1000) % 60).padStart(2, '0')
  return `${minutes}:${seconds}.${String(ms % 1000).padStart(3, '0')}`
}
