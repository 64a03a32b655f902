import type { Endpoint } from '../answers/answer.js'
import { searchByTime } from './entry-time.js'
import { leaderboardSummary, leaderboards } from './leaderboard.js'
import { leaderboardChanges } from './leaderboard-change.js'
import { leaderboardComparison } from './leaderboard-comparison.js'
import { leaderboard } from './leaderboard-entry.js'
import { gameMatches, lastMatches, lobbies, lobbyStats, matches, matchHistory, matchStats } from './match-list.js'
import { activitySummary, dailyOnline, lobbyHistory, onlineHistory, registeredUsers } from './network-count.js'
import { player, playerHistory, suggestPlayers } from './player.js'
import { searchPlayer, searchPlayers, searchRoster } from './player-entry.js'
import { leaderboardRecords, recentlySetRecords } from './record-history.js'
import { gameInfo, gameNames } from './title.js'
import { onlineUsers, titleOnlineHistory, topGames } from './title-count.js'

/** Every endpoint there is, in the order in which they are described. */
export const endpoints: readonly Endpoint[] = [
  registeredUsers,
  onlineHistory,
  lobbyHistory,
  activitySummary,
  dailyOnline,
  topGames,
  onlineUsers,
  titleOnlineHistory,
  gameInfo,
  gameNames,
  leaderboardSummary,
  leaderboards,
  leaderboard,
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
  searchByTime,
  searchPlayer,
  searchPlayers,
  searchRoster,
  suggestPlayers
]
