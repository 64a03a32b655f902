import type { Health, Readiness } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about the service itself. */
export function healthMethods(get: Get) {
  return {
    /** Returns whether the process answers. */
    getHealth: (call?: CallOptions) => get<Health>('/healthz', {}, call),

    /**
     * Returns whether the service answers with data; until it does, rejects with a {@link GamenetError} with 503 and
     * the reason. `repairing`: tables that lost rows; requests that need them get 503 until the rows are restored.
     */
    getReadiness: (call?: CallOptions) => get<Readiness>('/readyz', {}, call)
  }
}
