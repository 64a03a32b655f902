import type { PlayerComparison } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods that compare players. */
export function playerComparisonMethods(get: Get) {
  return {
    /**
     * Returns the boards with entries of both players and the leader of each; `names` are two, separated by a comma,
     * `limit` 1 to 1000 (1000).
     */
    comparePlayers: (
      parameters: {
        readonly names: string
        readonly limit?: number | undefined
        readonly offset?: number | undefined
      },
      call?: CallOptions
    ) => get<PlayerComparison>('/api/players/compare', parameters, call)
  }
}
