import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'
import { shownBoard, shownMeasure, shownPlace } from './shown-measure.js'

/** One reign of a board's record: the holder, from when to when. */
export const RecordReign = z
  .object({
    playerName: z.string(),
    ...shownMeasure,
    setAt: ShownInstant.describe('When it was set.'),
    fromAt: ShownInstant.describe('When it became the best: later than set where another was removed.'),
    toAt: ShownInstant.nullable().describe('When it was beaten or removed; null while it stands.'),
    fromIsFirstSight: z
      .boolean()
      .describe("Whether it began at the board's first visit with entries: it has stood since before `fromAt`."),
    isContested: z.boolean().describe('Whether a former record was beaten. A first sighting beat none.')
  })
  .meta({ id: 'RecordReign' })

/** The answer of `getLeaderboardRecords`. */
export const LeaderboardRecords = z
  .object({
    ...shownBoard,
    knownAt: ShownInstant.optional().describe('The requested instant of recording; absent: now.'),
    total: Count.describe('Number of reigns of the board.'),
    records: z.array(RecordReign)
  })
  .meta({ id: 'LeaderboardRecords', description: 'The reigns of the record, oldest first.' })
export type LeaderboardRecords = z.infer<typeof LeaderboardRecords>

/** The answer of `getRecentRecords`. */
export const RecentRecords = z
  .array(
    z
      .object({
        ...shownPlace,
        ...shownMeasure,
        setAt: ShownInstant,
        previousPlayerName: z.string().nullable().describe('Who held it until then; null for a first record.'),
        previousRating: z.string().nullable(),
        previousTimeMs: Count.nullable(),
        isContested: z
          .boolean()
          .describe(
            'Whether a former record was beaten. First records are mostly entries that a board had at its first visit.'
          ),
        isCurrent: z.boolean().describe('Whether it is still the best.')
      })
      .meta({ id: 'RecentRecord' })
  )
  .meta({ id: 'RecentRecords', description: 'Records as they were set, newest first.' })
export type RecentRecords = z.infer<typeof RecentRecords>
