import { achievementPage, achievementsPage } from './pages/achievements.js'
import { boardPage } from './pages/board.js'
import { cards } from './pages/cards.js'
import { comparePage } from './pages/compare.js'
import { comparePlayersPage } from './pages/compare-players.js'
import { gamePage, gameRedirect } from './pages/game.js'
import { gamesPage } from './pages/games.js'
import { homePage } from './pages/home.js'
import { matchesPage } from './pages/matches.js'
import { mePage } from './pages/me.js'
import { playerPage } from './pages/player.js'
import { changesPage, recordsPage } from './pages/records.js'
import { searchPage } from './pages/search.js'
import { statusPage } from './pages/status.js'
import { pagesBelowUser, userPage } from './pages/user.js'
import type { Page } from './values/page.js'

/** All pages: address → page. */
export const pages: readonly Page[] = [
  homePage,
  gamesPage,
  gameRedirect,
  gamePage,
  matchesPage,
  boardPage,
  playerPage,
  userPage,
  ...pagesBelowUser,
  mePage,
  comparePage,
  comparePlayersPage,
  recordsPage,
  changesPage,
  achievementsPage,
  achievementPage,
  searchPage,
  statusPage,
  ...cards
]
