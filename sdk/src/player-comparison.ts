import type { PlayerComparison } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about how players stand to one another. */
export function playerComparisonMethods(get: Get) {
  return {
    /** The boards that two players stand on and who leads; `names` are two, separated by a comma, `limit` 1 to 1000 (1000). */
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
