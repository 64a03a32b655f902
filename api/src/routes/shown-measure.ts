import { timeText } from '@gamenet/schemas'

/** Score or time of an entry, as answers show it: `shownMeasure` of the schemas. */
export function measureShown({ rating, timeMs }: { readonly rating: string; readonly timeMs: number | null }): {
  rating: string
  timeMs: number
  timeFormatted: string
  isTime: boolean
} {
  return timeMs === null
    ? { rating, timeMs: 0, timeFormatted: '', isTime: false }
    : { rating, timeMs, timeFormatted: timeText(timeMs), isTime: true }
}
