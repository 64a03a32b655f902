import type { Lobby } from '@gamenet/schemas'
import { type ListedBoard, readBoardList, readSelectedBoard } from './board-list.js'
import { type BoardEntry, readBoardTable } from './board-table.js'
import { readMatchTable } from './match-table.js'
import { elementsIn, hasClass, type PageElement } from './page-tree.js'
import { type PagePart, type PageSource, type ParsedPage, parseHtml } from './parsed-page.js'

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

function isTable(element: PageElement): boolean {
  return element.name === 'table' && hasClass(element, 'table-striped')
}

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

function missing(what: string): { ok: false; reason: string } {
  return { ok: false, reason: `${what} is missing` }
}

function tooManyLists(selects: readonly PageElement[]): { ok: false; reason: string } {
  return { ok: false, reason: `expected one list of boards (${SELECT}), found ${selects.length}` }
}
