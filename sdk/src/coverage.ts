import type { CollectorStatus, Coverage } from './answers.js'
import type { CallOptions, Get } from './request.js'
import type { Days } from './window.js'

/** Methods about the collector. */
export function coverageMethods(get: Get) {
  return {
    /** When the collector was blind; `days` 1 to 365 (7). */
    getCoverage: (parameters: Days = {}, call?: CallOptions) => get<Coverage>('/api/coverage', parameters, call),

    /** How old the data of each source is, and the progress of a history that is being loaded. */
    getStatus: (call?: CallOptions) => get<CollectorStatus>('/api/status', {}, call)
  }
}
