import { z } from 'zod'
import { LeaderboardId } from './leaderboard.js'

/** The answer of `search`. */
export const SearchResults = z
  .array(
    z
      .discriminatedUnion('kind', [
        z.object({ kind: z.literal('game'), name: z.string(), titleId: z.string() }).meta({ id: 'FoundGame' }),
        z
          .object({
            kind: z.literal('board'),
            name: z.string(),
            titleId: z.string(),
            gameName: z.string(),
            leaderboardId: LeaderboardId,
            listed: z.boolean().describe('Whether the game still lists the board.')
          })
          .meta({ id: 'FoundBoard' }),
        z.object({ kind: z.literal('player'), name: z.string() }).meta({ id: 'FoundPlayer' }),
        z.object({ kind: z.literal('user'), name: z.string().describe('The username.') }).meta({ id: 'FoundUser' })
      ])
      .meta({ id: 'SearchResult' })
  )
  .meta({ id: 'SearchResults', description: 'Games, then boards, players and users.' })
export type SearchResults = z.infer<typeof SearchResults>
