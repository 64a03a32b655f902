import { z } from 'zod'
import { RecordedAt, ShownInstant } from '../values/instant.js'
import { RecentUnlocks } from './achievement.js'
import { Count } from './count.js'
import { LeaderboardChange } from './leaderboard-change.js'
import { Matches } from './match-list.js'
import { RecentRecords } from './record-history.js'

/**
 * The kinds of events that a client can ask for; a new one comes at the end, as positions in cursors do. `live-counts`
 * is a state, not a history: it has no cursor.
 */
export const STREAM_KINDS = ['count', 'title-count', 'change', 'record', 'match', 'achievement', 'live-counts'] as const
export type StreamKind = (typeof STREAM_KINDS)[number]

const StreamedCount = z
  .object({
    recorded_at: RecordedAt,
    registered_count: Count.nullable(),
    online_count: Count.nullable(),
    lobby_count: Count.nullable()
  })
  .meta({ id: 'StreamedCount', description: 'Counts of the network; null for one that the source did not give.' })

const StreamedTitleCount = z
  .object({
    titleId: z.string(),
    gameName: z.string(),
    recorded_at: RecordedAt,
    online_count: Count,
    activeLobbies: Count,
    activeLobbyPlayers: Count
  })
  .meta({ id: 'StreamedTitleCount', description: 'Players of one title.' })

const Retracted = z
  .object({ importId: z.string(), kinds: z.array(z.enum(STREAM_KINDS)), retractedAt: ShownInstant })
  .meta({ id: 'RetractedImport', description: 'An undone import: its events are no longer in the past of the stream.' })

const DATA = {
  count: StreamedCount,
  'title-count': StreamedTitleCount,
  change: LeaderboardChange,
  record: RecentRecords.element,
  match: Matches,
  achievement: RecentUnlocks.shape.recent.element,
  retracted: Retracted
} as const

const IDS = {
  count: 'CountEvent',
  'title-count': 'TitleCountEvent',
  change: 'ChangeEvent',
  record: 'RecordEvent',
  match: 'MatchEvent',
  achievement: 'AchievementEvent',
  retracted: 'RetractedEvent'
} as const

function event<const Kind extends keyof typeof DATA>(kind: Kind) {
  return z
    .object({
      cursor: z.string().describe('Where a stream with the same filter continues behind this event.'),
      kind: z.literal(kind),
      happenedAt: ShownInstant,
      knownAt: ShownInstant.describe(
        'When the log took the event, as `knownAt` of other endpoints: later than `happenedAt`.'
      ),
      data: DATA[kind]
    })
    .meta({ id: IDS[kind] })
}

/** An event of the stream. */
export const StreamEvent = z
  .discriminatedUnion('kind', [
    event('count'),
    event('title-count'),
    event('change'),
    event('record'),
    event('match'),
    event('achievement'),
    event('retracted')
  ])
  .meta({ id: 'StreamEvent' })

/** The answer of a long poll of `stream`. */
export const StreamPage = z
  .object({
    events: z.array(StreamEvent),
    cursor: z.string().describe('The parameter `after` of the next request.')
  })
  .meta({ id: 'StreamPage', description: 'The next events, at most 500; none when nothing came in time.' })
export type StreamPage = z.infer<typeof StreamPage>
