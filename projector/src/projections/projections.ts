import type { Projection } from '../store/projection.js'
import { achievementScore } from './achievement-score.js'
import { achievementUnlock } from './achievement-unlock.js'
import { achievementUnlockFeed } from './achievement-unlock-feed.js'
import { importRetraction } from './import-retraction.js'
import { importRun } from './import-run.js'
import { leaderboard } from './leaderboard.js'
import { leaderboardEntry } from './leaderboard-entry.js'
import { leaderboardHistory } from './leaderboard-history.js'
import { matchLatest, matchList, matchListHour } from './match-list.js'
import { matchSession } from './match-session.js'
import { networkCount, networkCountHour } from './network-count.js'
import { player } from './player.js'
import { playerEntry } from './player-entry.js'
import { presence, presenceDay, presenceLatest, userGamertag } from './presence.js'
import { profile } from './profile.js'
import { rating, ratingGiven } from './rating.js'
import { scrape } from './scrape.js'
import { timedEntry } from './timed-entry.js'
import { title } from './title.js'
import { titleCount, titleCountDay, titleCountHour, titleLatest } from './title-count.js'
import { titleStatus } from './title-status.js'

/** All projections; one that reads another's table comes after it. */
export const projections: readonly Projection[] = [
  networkCount,
  networkCountHour,
  title,
  titleLatest,
  titleStatus,
  titleCount,
  titleCountHour,
  titleCountDay,
  leaderboard,
  leaderboardHistory,
  player,
  leaderboardEntry,
  playerEntry,
  timedEntry,
  matchList,
  matchLatest,
  matchListHour,
  matchSession,
  presence,
  presenceLatest,
  userGamertag,
  presenceDay,
  profile,
  rating,
  ratingGiven,
  achievementUnlock,
  achievementUnlockFeed,
  achievementScore,
  scrape,
  importRun,
  importRetraction
]
