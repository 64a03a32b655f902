import type { Action, Endpoint } from '../answers/endpoint.js'
import { achievementCatalog, achievementHolders, userAchievements } from './achievement.js'
import { achievementLeaderboard } from './achievement-score.js'
import { recentUnlocks } from './achievement-unlock-feed.js'
import { calendar, hoursOfWeek, peaks, titleRanks } from './calendar.js'
import { collectorStatus, coverage } from './coverage.js'
import { leaderboardSummary, leaderboards } from './leaderboard.js'
import { leaderboardChanges } from './leaderboard-change.js'
import { leaderboardComparison } from './leaderboard-comparison.js'
import { leaderboardDays } from './leaderboard-day.js'
import { leaderboard } from './leaderboard-entry.js'
import { gameMatches, lastMatches, lobbies, lobbyStats, matches, matchHistory, matchStats } from './match-list.js'
import { activitySummary, dailyOnline, lobbyHistory, onlineHistory, registeredUsers } from './network-count.js'
import { playTime } from './play-time.js'
import { player, playerHistory, playerUsers, suggestPlayers } from './player.js'
import { playerComparison } from './player-comparison.js'
import { searchPlayer, searchPlayers, searchRoster } from './player-entry.js'
import { profile } from './profile.js'
import { editProfile, putProfile } from './profile-edit.js'
import { rateProfile, reputation } from './rating.js'
import { leaderboardRecords, recentlySetRecords } from './record-history.js'
import { search } from './search-result.js'
import { sparklines } from './sparkline.js'
import { searchByTime } from './timed-entry.js'
import { timeline } from './timeline.js'
import { gameInfo, gameNames } from './title.js'
import { onlineUsers, titleOnlineHistory, topGames } from './title-count.js'
import { titleSummary } from './title-summary.js'
import { userGames } from './user-game.js'
import { userScores } from './user-score.js'

/** All endpoints, in the order of their descriptions. */
export const endpoints: readonly Endpoint[] = [
  registeredUsers,
  onlineHistory,
  lobbyHistory,
  activitySummary,
  dailyOnline,
  topGames,
  onlineUsers,
  titleSummary,
  titleOnlineHistory,
  sparklines,
  calendar,
  hoursOfWeek,
  titleRanks,
  peaks,
  coverage,
  collectorStatus,
  gameInfo,
  gameNames,
  leaderboardSummary,
  leaderboards,
  leaderboard,
  leaderboardDays,
  leaderboardComparison,
  leaderboardRecords,
  recentlySetRecords,
  leaderboardChanges,
  matches,
  gameMatches,
  lobbies,
  matchHistory,
  lastMatches,
  matchStats,
  lobbyStats,
  player,
  playerHistory,
  playerUsers,
  search,
  searchByTime,
  searchPlayer,
  searchPlayers,
  searchRoster,
  suggestPlayers,
  profile,
  userGames,
  userScores,
  playTime,
  timeline,
  playerComparison,
  reputation,
  userAchievements,
  achievementCatalog,
  achievementHolders,
  achievementLeaderboard,
  recentUnlocks
]

/** All actions, in the order of their descriptions. */
export const actions: readonly Action[] = [editProfile, putProfile, rateProfile]
