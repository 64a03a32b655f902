import type { TimeMatches } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about times on boards. */
export function timedEntryMethods(get: Get) {
  return {
    /** Returns entries with a time, `M:SS.mmm` or `SS.mmm`, within `tolerance` (0) ms; `limit` 1 to 500 (100). */
    searchByTime: (
      parameters: {
        readonly time: string
        readonly tolerance?: number | undefined
        readonly titleId?: string | undefined
        readonly limit?: number | undefined
      },
      call?: CallOptions
    ) => get<TimeMatches>('/api/datasearch/time', parameters, call)
  }
}
