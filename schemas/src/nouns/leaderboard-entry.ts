import { z } from 'zod'
import { Instant, ShownInstant } from '../values/instant.js'
import { TitleId } from '../values/title-id.js'
import { topic } from '../wire/topic.js'
import { Count } from './count.js'
import { boardKey, LeaderboardId } from './leaderboard.js'
import { shownBoard, shownMeasure } from './shown-measure.js'

/** Changes of an entry that a board's followers see: it came, its rating changed, it left. */
export const BOARD_CHANGES = ['new', 'updated', 'removed'] as const

/** `moved`: only its place or its details changed, not the rating. */
export const ENTRY_CHANGES = [...BOARD_CHANGES, 'moved'] as const
export type EntryChange = (typeof ENTRY_CHANGES)[number]

const Rank = z.int().min(-2_147_483_648).max(2_147_483_647)

/**
 * A change of one entry of a board at one instant, with the whole state after it. An entry is identified by its exact
 * name and, if a name occurs twice on a board, by its number among these.
 */
export const LeaderboardEntryChanged = z
  .object({
    titleId: TitleId,
    leaderboardId: LeaderboardId,
    playerName: z.string().min(1).max(500),
    /** 2 for the second entry with exactly this name, and so on; absent means 1. */
    occurrence: z.int().min(2).max(65_535).optional(),
    changeType: z.enum(ENTRY_CHANGES),
    changedAt: Instant,
    /** The rank that the source showed. If there is an `order`, the rank follows from it. */
    rank: Rank.optional(),
    /** The score or time as the source showed it. */
    rating: z.string().max(200).optional(),
    /** Milliseconds; absent for a score. Determined once, when the event is created. */
    timeMs: Count.optional(),
    /** The score is better when it is lower. A source that shows places does not say it. */
    isAscending: z.literal(true).optional(),
    /** Place among the scraped entries of the board: a lower number is a higher place. */
    order: z.int().optional(),
    /** Shown rank minus the shown rank of the entry above; for the first entry, its rank. */
    step: z.int().min(-4_294_967_296).max(4_294_967_296).optional(),
    /** Further values of the entry on the board (date, location, car, races …), by name. */
    details: z.record(z.string().max(40), z.string().max(500)).optional()
  })
  .refine(
    ({ changeType, rating, timeMs }) => changeType === 'removed' || rating !== undefined || timeMs !== undefined,
    'an entry that is on the board has a rating or a timeMs'
  )
export type LeaderboardEntryChanged = z.infer<typeof LeaderboardEntryChanged>

export const leaderboardEntryTopic = topic({
  name: 'leaderboard-entry',
  event: LeaderboardEntryChanged,
  key: (event) => boardKey(event),
  instant: (event) => event.changedAt,
  // Many entries of a board change at one instant, and files have two states of one entry in one second.
  identity: (event) => {
    const numbered = event.occurrence === undefined ? '' : `#${event.occurrence}`
    return `${boardKey(event)}/${event.playerName}${numbered}=${event.rating ?? event.timeMs ?? event.changeType}`
  }
})

/** One entry of the answer of `getLeaderboard`. */
export const LeaderboardRow = z
  .object({
    rank: z.string(),
    name: z.string(),
    ...shownMeasure,
    details: z.record(z.string(), z.string()).optional().describe('Further columns of the board, if it has any.')
  })
  .meta({ id: 'LeaderboardRow' })

/** The answer of `getLeaderboard`. */
export const Leaderboard = z
  .object({
    ...shownBoard,
    asOf: ShownInstant.optional().describe('The requested instant; absent: now.'),
    knownAt: ShownInstant.optional().describe('The requested instant of recording; absent: now.'),
    total: Count.describe('Number of entries of the complete board.'),
    entries: z.array(LeaderboardRow)
  })
  .meta({ id: 'Leaderboard', description: 'The board.' })
export type Leaderboard = z.infer<typeof Leaderboard>
