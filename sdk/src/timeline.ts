import type { Timeline } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about what users have reached. */
export function timelineMethods(get: Get) {
  return {
    /**
     * What a user has reached, newest first; `limit` 1 to 100 (25), `after` a cursor out of the answer's `Link` header.
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
