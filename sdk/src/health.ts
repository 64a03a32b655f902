import type { CallOptions, Get } from './request.js'

/** Methods about the service itself. */
export function healthMethods(get: Get) {
  return {
    /** Whether the process answers. */
    getHealth: (call?: CallOptions) => get<{ status: 'ok' }>('/healthz', {}, call),

    /** Whether the service answers with data; until it does, a {@link GamenetError} with 503 says why. */
    getReadiness: (call?: CallOptions) => get<{ status: 'ready' }>('/readyz', {}, call)
  }
}
