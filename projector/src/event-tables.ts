import type { Topic } from '@gamenet/schemas'
import type { EventTable } from './event-table.js'
import { achievementUnlockEvents } from './event-tables/achievement-unlock.js'
import { importRetractionEvents } from './event-tables/import-retraction.js'
import { importRunEvents } from './event-tables/import-run.js'
import { leaderboardEvents } from './event-tables/leaderboard.js'
import { leaderboardEntryEvents } from './event-tables/leaderboard-entry.js'
import { matchListEvents } from './event-tables/match-list.js'
import { networkCountEvents } from './event-tables/network-count.js'
import { presenceEvents } from './event-tables/presence.js'
import { profileEvents } from './event-tables/profile.js'
import { ratingEvents } from './event-tables/rating.js'
import { scrapeEvents } from './event-tables/scrape.js'
import { titleEvents } from './event-tables/title.js'
import { titleCountEvents } from './event-tables/title-count.js'

/** Every event table, one a topic. */
export const eventTables: readonly EventTable[] = [
  networkCountEvents,
  titleCountEvents,
  titleEvents,
  leaderboardEvents,
  leaderboardEntryEvents,
  matchListEvents,
  presenceEvents,
  profileEvents,
  ratingEvents,
  achievementUnlockEvents,
  scrapeEvents,
  importRunEvents,
  importRetractionEvents
]

/** The event tables of these topics, each with the schema of the given topic, which judges what comes into it. */
export function eventTablesOf(topics: readonly Topic[]): EventTable[] {
  return topics.flatMap((topic) => {
    const table = eventTables.find((each) => each.topic.name === topic.name)
    return table === undefined ? [] : [{ ...table, topic }]
  })
}

/** By topic. */
export const eventTableNames: ReadonlyMap<string, string> = new Map(
  eventTables.map(({ topic, table }) => [topic.name, table])
)
