import type { Lobby } from '@gamenet/schemas'
import { countIn, quoted } from './page-text.js'
import { hasClass, type PageElement, shownText } from './page-tree.js'
import type { PagePart, PageSource } from './parsed-page.js'
import { stripedRows } from './striped-table.js'

const NAME = 'the table of matches'
const PLAYERS = /^([\d,]+) ?\/ ?([\d,]+)$/
const HOST_LENGTH_MAX = 500

/**
 * Reads the current matches: the first cell is the host; the only cell to its right with CURRENT/MAX has the players.
 */
export function readMatchTable(table: PageElement, source: PageSource): PagePart<readonly Lobby[]> {
  return stripedRows(table, { source, name: NAME }, lobbyIn)
}

function lobbyIn([first, ...others]: readonly PageElement[]): Lobby | string {
  const hostName = first === undefined ? '' : shownText(first)
  if (hostName === '' || hostName.length > HOST_LENGTH_MAX) {
    return `expected a host of 1 to ${HOST_LENGTH_MAX} characters, got ${quoted(hostName)}`
  }
  const texts = others.filter((cell) => hasClass(cell, 'text-right')).map(shownText)
  const [players, ...more] = texts.filter((text) => /\d ?\/ ?\d/.test(text))
  if (players === undefined || more.length > 0 || !PLAYERS.test(players)) {
    return `expected one cell CURRENT/MAX at the right, got ${quoted(texts.join(' | '))}`
  }
  const [, current, most] = PLAYERS.exec(players) ?? []
  const currentPlayers = countIn(current ?? '')
  const maxPlayers = countIn(most ?? '')
  if (currentPlayers === undefined || maxPlayers === undefined) {
    return `expected two counts CURRENT/MAX, got ${quoted(players)}`
  }
  return { hostName, currentPlayers, maxPlayers }
}
