import { z } from 'zod'
import { Count } from './count.js'

/** The answer of `suggestPlayers`. */
export const SuggestedPlayers = z
  .object({ results: z.array(z.string()), count: Count.meta({ description: 'Names in `results`.' }) })
  .meta({ description: 'Names of players in alphabetical order of their folded form.' })
export type SuggestedPlayers = z.infer<typeof SuggestedPlayers>
