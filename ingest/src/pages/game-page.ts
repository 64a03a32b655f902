import type { Lobby } from '@gamenet/schemas'
import { type ListedBoard, readBoardList, readSelectedBoard } from './board-list.js'
import { type BoardEntry, readBoardTable } from './board-table.js'
import { countIn, quoted } from './page-text.js'
import { elementsIn, hasClass, type PageElement, shownText } from './page-tree.js'
import { type PagePart, type PageSource, type ParsedPage, parseHtml } from './parsed-page.js'
import { stripedRows } from './striped-table.js'

/** A game page. Its parts are independent: a part may be readable although another one is not. */
export type GamePage = {
  readonly matches: PagePart<readonly Lobby[]>
  /** The boards of the game, in page order; undefined if the page has no list. */
  readonly boards: PagePart<readonly ListedBoard[] | undefined>
  /** The board on the page. Unreadable if the page shows none. */
  readonly board: PagePart<ShownBoard>
}

export type ShownBoard = {
  /** The selected board: null if the placeholder is selected, undefined if nothing is. */
  readonly leaderboardId: number | null | undefined
  readonly entries: readonly BoardEntry[]
}

const TABLE = 'table.table-striped'
const SELECT = 'select#leaderboard-select'

/** Parses the page of one game: its matches, its list of boards, and the requested board. */
export function parseGamePage(html: string): ParsedPage<GamePage> {
  return parseHtml(html, (document, source) => {
    const found = elementsIn([document], (element) => isTable(element) || isBoardList(element))
    const selects = found.filter(({ name }) => name === 'select')
    const first = selects.length === 0 ? found.length : found.findIndex(({ name }) => name === 'select')
    const matchTable = found.slice(0, first)[0]
    const boardTable = found.slice(first).find(({ name }) => name === 'table')
    return {
      ok: true,
      page: {
        matches:
          matchTable === undefined
            ? missing(`the table of matches (${TABLE}${first < found.length ? ' before the list of boards' : ''})`)
            : readMatchTable(matchTable, source),
        boards: selects.length > 1 ? tooManyLists(selects) : listedBoards(selects[0], source),
        board: selects.length > 1 ? tooManyLists(selects) : shownBoard(selects[0], boardTable, source)
      }
    }
  })
}

const isTable = (element: PageElement): boolean => element.name === 'table' && hasClass(element, 'table-striped')

function isBoardList({ name, attribs }: PageElement): boolean {
  return name === 'select' && attribs.id === 'leaderboard-select'
}

function listedBoards(select: PageElement | undefined, source: PageSource): GamePage['boards'] {
  return select === undefined ? { ok: true, value: undefined } : readBoardList(select, source)
}

function shownBoard(
  select: PageElement | undefined,
  table: PageElement | undefined,
  source: PageSource
): GamePage['board'] {
  if (select === undefined) return missing(`the list of boards (${SELECT}), after which a board stands,`)
  if (table === undefined) return missing(`the table of a board (${TABLE} after the list of boards)`)
  const selected = readSelectedBoard(select, source)
  if (!selected.ok) return selected
  const entries = readBoardTable(table, source)
  return entries.ok ? { ok: true, value: { leaderboardId: selected.value, entries: entries.value } } : entries
}

const missing = (what: string): { ok: false; reason: string } => ({ ok: false, reason: `${what} is missing` })

function tooManyLists(selects: readonly PageElement[]): { ok: false; reason: string } {
  return { ok: false, reason: `expected one list of boards (${SELECT}), found ${selects.length}` }
}

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
  if (hostName === '' || hostName.length > HOST_LENGTH_MAX)
    return `expected a host of 1 to ${HOST_LENGTH_MAX} characters, got ${quoted(hostName)}`
  const texts = others.filter((cell) => hasClass(cell, 'text-right')).map(shownText)
  const [players, ...more] = texts.filter((text) => /\d ?\/ ?\d/.test(text))
  if (players === undefined || more.length > 0 || !PLAYERS.test(players))
    return `expected one cell CURRENT/MAX at the right, got ${quoted(texts.join(' | '))}`
  const [, current, most] = PLAYERS.exec(players) ?? []
  const currentPlayers = countIn(current ?? '')
  const maxPlayers = countIn(most ?? '')
  if (currentPlayers === undefined || maxPlayers === undefined)
    return `expected two counts CURRENT/MAX, got ${quoted(players)}`
  return { hostName, currentPlayers, maxPlayers }
}
