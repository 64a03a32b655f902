const DAY_MS = 86_400_000
/** Maximum number of cached days: rows of an entry are months apart, rows of a board span few years. */
const DAYS_MAX = 10_000

const days = new Map<number, string>()
const twoDigits = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'))

/**
 * Formats an instant as a value of a line. Only its day is formatted by `Date`, which would be a tenth of a fold's
 * time.
 */
export function instant(ms: number): string {
  const day = Math.floor(ms / DAY_MS)
  const rest = ms - day * DAY_MS
  const minutes = Math.floor(rest / 60_000)
  const milliseconds = rest - minutes * 60_000
  const seconds = Math.floor(milliseconds / 1000)
  const clock = `${twoDigits[Math.floor(minutes / 60)]}:${twoDigits[minutes % 60]}:${twoDigits[seconds]}`
  return `"${dayText(day)} ${clock}.${String(milliseconds - seconds * 1000).padStart(3, '0')}"`
}

function dayText(day: number): string {
  let text = days.get(day)
  if (text === undefined) {
    if (days.size >= DAYS_MAX) days.clear()
    text = new Date(day * DAY_MS).toISOString().slice(0, 10)
    days.set(day, text)
  }
  return text
}
