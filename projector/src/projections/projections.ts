import type { Projection } from '../store/projection.js'
import { achievementScore } from './achievement-score.js'
import { achievementUnlock } from './achievement-unlock.js'
import { achievementUnlockFeed } from './achievement-unlock-feed.js'
import { importRetraction } from './import-retraction.js'
import { importRun } from './import-run.js'
import { leaderboard } from './leaderboard.js'
import { leaderboardEntry } from './leaderboard-entry.js'
import { leaderboardHistory } from './leaderboard-history.js'
import { matchLatest } from './match-latest.js'
import { matchList } from './match-list.js'
import { matchListHour } from './match-list-hour.js'
import { matchSession } from './match-session.js'
import { networkCount } from './network-count.js'
import { networkCountHour } from './network-count-hour.js'
import { player } from './player.js'
import { playerEntry } from './player-entry.js'
import { presence } from './presence.js'
import { presenceDay } from './presence-day.js'
import { presenceLatest } from './presence-latest.js'
import { profile } from './profile.js'
import { rating } from './rating.js'
import { ratingGiven } from './rating-given.js'
import { scrape } from './scrape.js'
import { timedEntry } from './timed-entry.js'
import { title } from './title.js'
import { titleCount } from './title-count.js'
import { titleCountDay } from './title-count-day.js'
import { titleCountHour } from './title-count-hour.js'
import { titleLatest } from './title-latest.js'
import { titleStatus } from './title-status.js'
import { userGamertag } from './user-gamertag.js'

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
