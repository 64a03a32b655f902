import type { Calendar, HourMatrix, Peaks, TitleRanks } from './answers.js'
import type { CallOptions, Get } from './request.js'

/**
 * Days of a time zone: an IANA name (UTC), the first day and the day after the last one, `YYYY-MM-DD` (the whole
 * history).
 */
export type LocalDays = {
  readonly tz?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

/** The length of a period; a week begins on Monday. */
export type Every = { readonly every?: 'day' | 'week' | 'month' | 'year' | undefined }

/** Methods about days, weeks, months and years. */
export function calendarMethods(get: Get) {
  return {
    /**
     * Periods (months) of up to 20 titles, ids or names separated by commas, or of a metric of the network (online);
     * `rolling` 2 to 366 periods.
     */
    getCalendar: (
      parameters: LocalDays &
        Every & {
          readonly titleIds?: string | undefined
          readonly metric?: 'online' | 'lobbies' | 'registered' | undefined
          readonly rolling?: number | undefined
        } = {},
      call?: CallOptions
    ) => get<Calendar>('/api/calendar', parameters, call),

    /** The hours of the week of a title, or of the network. */
    getHourMatrix: (parameters: LocalDays & { readonly titleId?: string | undefined } = {}, call?: CallOptions) =>
      get<HourMatrix>('/api/calendar/hours', parameters, call),

    /** The rank of a title among all by period (months). */
    getTitleRanks: (parameters: LocalDays & Every & { readonly titleId: string }, call?: CallOptions) =>
      get<TitleRanks>('/api/title/:titleId/ranks', parameters, call),

    /** All-time peaks of the network and of every game. */
    getPeaks: (call?: CallOptions) => get<Peaks>('/api/peaks', {}, call)
  }
}
