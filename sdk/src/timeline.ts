import type { Timeline } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about the timeline of users. */
export function timelineMethods(get: Get) {
  return {
    /**
     * Returns the achievements, records and gained ranks of a user, newest first; `limit` 1 to 100 (25), `after` a
     * cursor of the answer's `Link` header.
     */
    getTimeline: (
      parameters: {
        readonly username: string
        readonly limit?: number | undefined
        readonly after?: string | undefined
      },
      call?: CallOptions
    ) => get<Timeline>('/api/profile/:username/timeline', parameters, call)
  }
}
