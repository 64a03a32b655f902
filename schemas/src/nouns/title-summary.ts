import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'

const changeSince = (ago: string) =>
  z
    .int()
    .nullable()
    .describe(`\`online\` minus the count ${ago} earlier; null without a sample within 30 minutes of that.`)

/** The answer of `getTitle`. */
export const TitleSummary = z
  .object({
    titleId: z.string(),
    name: z.string(),
    online: Count.nullable().describe('Players in the newest scrape; null if it lacks the title.'),
    onlineAt: ShownInstant.nullable().describe('Instant of `online`.'),
    change24h: changeSince('24 hours'),
    change7d: changeSince('7 days'),
    change30d: changeSince('30 days'),
    peak24h: Count.nullable().describe('Highest count of the last 24 hours; null without a sample.'),
    peak: Count.nullable().describe('Highest count ever; null without a sample.'),
    peakAt: ShownInstant.nullable().describe('First instant of `peak`.'),
    rank: z.int().nullable().describe('1: no title has more players now; equal ones share a rank.'),
    titles: z.int().describe('Titles in the newest scrape.'),
    lobbies: Count.nullable().describe('Open lobbies at `onlineAt`; null if the source lacks them.'),
    lobbyPlayers: Count.nullable().describe('Players in these; null if the source lacks them.')
  })
  .meta({ id: 'TitleSummary', description: 'The numbers of the title.' })
export type TitleSummary = z.infer<typeof TitleSummary>
