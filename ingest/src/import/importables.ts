import { importRefused } from './import-refused.js'
import type { Importable } from './importable.js'
import { leaderboardImport } from './leaderboard.js'
import { leaderboardEntryImport } from './leaderboard-entry.js'
import { matchListImport } from './match-list.js'
import { networkCountImport } from './network-count.js'
import { presenceImport } from './presence.js'
import { titleImport } from './title.js'
import { titleCountImport } from './title-count.js'

/** Every topic for imports. */
export const importables: readonly Importable[] = [
  networkCountImport,
  titleCountImport,
  titleImport,
  leaderboardImport,
  leaderboardEntryImport,
  matchListImport,
  presenceImport
]

/** Returns the importable topic with that name. */
export function importableOf(topic: string): Importable {
  const found = importables.find((candidate) => candidate.topic.name === topic)
  if (found !== undefined) return found
  const names = importables.map((candidate) => candidate.topic.name).join(', ')
  throw importRefused(`${JSON.stringify(topic)} is not a topic for imports; the topics are ${names}`)
}
