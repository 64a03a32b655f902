import { achievementUnlockTopic } from '../nouns/achievement-unlock.js'
import { importRetractionTopic } from '../nouns/import-retraction.js'
import { importRunTopic } from '../nouns/import-run.js'
import { leaderboardTopic } from '../nouns/leaderboard.js'
import { leaderboardEntryTopic } from '../nouns/leaderboard-entry.js'
import { matchListTopic } from '../nouns/match-list.js'
import { networkCountTopic } from '../nouns/network-count.js'
import { presenceTopic } from '../nouns/presence.js'
import { profileTopic } from '../nouns/profile.js'
import { ratingTopic } from '../nouns/rating.js'
import { scrapeTopic } from '../nouns/scrape.js'
import { titleTopic } from '../nouns/title.js'
import { titleCountTopic } from '../nouns/title-count.js'
import { titleStatusTopic } from '../nouns/title-status.js'
import type { Topic } from './topic.js'

/** All topics. A noun that is missing here is neither loaded nor imported. */
export const topics: readonly Topic[] = [
  networkCountTopic,
  titleCountTopic,
  titleTopic,
  titleStatusTopic,
  leaderboardTopic,
  leaderboardEntryTopic,
  matchListTopic,
  presenceTopic,
  profileTopic,
  ratingTopic,
  achievementUnlockTopic,
  scrapeTopic,
  importRunTopic,
  importRetractionTopic
]

/** The topics for `gamenet import`. */
export const importableTopics: readonly Topic[] = [
  networkCountTopic,
  titleCountTopic,
  titleTopic,
  leaderboardTopic,
  leaderboardEntryTopic,
  matchListTopic,
  presenceTopic
]
