import type { Topic } from '../wire/topic.js'
import { achievementUnlockTopic } from './achievement-unlock.js'
import { importRetractionTopic } from './import-retraction.js'
import { importRunTopic } from './import-run.js'
import { leaderboardTopic } from './leaderboard.js'
import { leaderboardEntryTopic } from './leaderboard-entry.js'
import { matchListTopic } from './match-list.js'
import { networkCountTopic } from './network-count.js'
import { presenceTopic } from './presence.js'
import { profileTopic } from './profile.js'
import { ratingTopic } from './rating.js'
import { scrapeTopic } from './scrape.js'
import { titleTopic } from './title.js'
import { titleCountTopic } from './title-count.js'
import { titleStatusTopic } from './title-status.js'

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
