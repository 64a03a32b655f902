import { timeText } from '@gamenet/schemas'

/** Returns the score or time of an entry in answers: `shownMeasure` of the schemas. */
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
