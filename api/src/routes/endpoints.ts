import type { Endpoint } from '../answers/answer.js'
import { activitySummary, dailyOnline, lobbyHistory, onlineHistory, registeredUsers } from './network-count.js'
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
  gameNames
]
