import { parseGamePage } from './game-page.js'
import { parseGamesPage } from './games-page.js'
import { parseHomePage } from './home-page.js'
import { parsePlayersPage } from './players-page.js'

/** The parser of each kind of page. */
export const pageParsers = {
  home: parseHomePage,
  games: parseGamesPage,
  game: parseGamePage,
  players: parsePlayersPage
} as const
export type PageKind = keyof typeof pageParsers

/** A request to the parsing thread. */
export type ParseRequest = { readonly kind: PageKind; readonly html: string; readonly address: string }
