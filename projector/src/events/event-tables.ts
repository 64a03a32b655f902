import type { Topic } from '@gamenet/schemas'
import { achievementUnlockEvents } from './achievement-unlock.js'
import type { EventTable } from './event-table.js'
import { importRetractionEvents } from './import-retraction.js'
import { importRunEvents } from './import-run.js'
import { leaderboardEvents } from './leaderboard.js'
import { leaderboardEntryEvents } from './leaderboard-entry.js'
import { matchListEvents } from './match-list.js'
import { networkCountEvents } from './network-count.js'
import { presenceEvents } from './presence.js'
import { profileEvents } from './profile.js'
import { ratingEvents } from './rating.js'
import { scrapeEvents } from './scrape.js'
import { titleEvents } from './title.js'
import { titleCountEvents } from './title-count.js'
import { titleStatusEvents } from './title-status.js'

/** All event tables, one per topic. */
export const eventTables: readonly EventTable[] = [
  networkCountEvents,
  titleCountEvents,
  titleEvents,
  titleStatusEvents,
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

/** Returns the event tables of these topics, each with the schema of the given topic. */
export function eventTablesOf(topics: readonly Topic[]): EventTable[] {
  return topics.flatMap((topic) => {
    const table = eventTables.find((each) => each.topic.name === topic.name)
    return table === undefined ? [] : [{ ...table, topic }]
  })
}

/** Returns the event table of a topic. Throws for a topic of another program. */
export function eventTableOf(topic: Pick<Topic, 'name'>): EventTable {
  const found = eventTables.find((each) => each.topic.name === topic.name)
  if (found === undefined)
    throw new Error(`This program does not know the topic ${topic.name}: start the one that does.`)
  return found
}

/** Names of event tables by topic. */
export const eventTableNames: ReadonlyMap<string, string> = new Map(
  eventTables.map(({ topic, table }) => [topic.name, table])
)
