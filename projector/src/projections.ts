import type { Projection } from './projection.js'
import { achievementScore } from './projections/achievement-score.js'
import { achievementUnlock } from './projections/achievement-unlock.js'
import { achievementUnlockFeed } from './projections/achievement-unlock-feed.js'
import { entryTime } from './projections/entry-time.js'
import { importRetraction } from './projections/import-retraction.js'
import { importRun } from './projections/import-run.js'
import { leaderboard } from './projections/leaderboard.js'
import { leaderboardEntry } from './projections/leaderboard-entry.js'
import { leaderboardHistory } from './projections/leaderboard-history.js'
import { matchLatest } from './projections/match-latest.js'
import { matchList } from './projections/match-list.js'
import { matchListHour } from './projections/match-list-hour.js'
import { matchSession } from './projections/match-session.js'
import { networkCount } from './projections/network-count.js'
import { networkCountHour } from './projections/network-count-hour.js'
import { player } from './projections/player.js'
import { playerEntry } from './projections/player-entry.js'
import { presence } from './projections/presence.js'
import { presenceDay } from './projections/presence-day.js'
import { presenceLatest } from './projections/presence-latest.js'
import { profile } from './projections/profile.js'
import { rating } from './projections/rating.js'
import { ratingGiven } from './projections/rating-given.js'
import { scrape } from './projections/scrape.js'
import { title } from './projections/title.js'
import { titleCount } from './projections/title-count.js'
import { titleCountDay } from './projections/title-count-day.js'
import { titleCountHour } from './projections/title-count-hour.js'
import { titleLatest } from './projections/title-latest.js'
import { userGamertag } from './projections/user-gamertag.js'

/** Every projection; one that reads another's table stands behind it. */
export const projections: readonly Projection[] = [
  networkCount,
  networkCountHour,
  title,
  titleLatest,
  titleCount,
  titleCountHour,
  titleCountDay,
  leaderboard,
  leaderboardHistory,
  player,
  entryTime,
  leaderboardEntry,
  playerEntry,
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
