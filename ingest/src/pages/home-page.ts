import { TITLE_FEATURES, visibleText } from '@gamenet/schemas'
import { countIn, lobbiesIn, quoted } from './page-text.js'
import { childElements, elementsIn, hasClass, named, type PageElement, shownText } from './page-tree.js'
import { type ParsedPage, parseHtml } from './parsed-page.js'
import { gameTables, type ListedTitle, type ReadRow, readListedTitle, readTitleRows, tableRows } from './title-table.js'
import { unreadablePage } from './unreadable-page.js'

/** A row of the home page. */
export type CountedTitle = ListedTitle & {
  readonly online: number
  /** Lobbies open, and their players; absent when their cell is unreadable. */
  readonly sessions?: number
  readonly lobbyPlayers?: number
  /** Absent when the row does not show all four icons. */
  readonly features?: readonly (typeof TITLE_FEATURES)[number][]
}

/** The home page, as far as it could be read. */
export type HomePage = {
  readonly registered: number
  /**
   * The number that the page states; undefined if unreadable. The rows count: a network may support a title that its
   * table does not list.
   */
  readonly gamesSupported: number | undefined
  readonly online: number
  readonly titles: readonly CountedTitle[]
  /** One sentence per row without a sample, and for the number of games, without which lost rows are not noticed. */
  readonly unreadable: readonly string[]
  /** One sentence per row without its lobbies. */
  readonly incomplete: readonly string[]
}

const REGISTERED = 'Registered Users'
const GAMES_SUPPORTED = 'Games Supported'
const ONLINE = 'Users Online Now'
const CELLS = 5
type Row = readonly [PageElement, PageElement, PageElement, PageElement, PageElement]

/**
 * Parses the network's home page. A page without its two counts of users or its table of games is refused as a whole.
 */
export function parseHomePage(html: string, address: string): ParsedPage<HomePage> {
  return parseHtml(html, (document) => {
    const connect = elementsIn([document], ({ name, attribs }) => name === 'section' && attribs.id === 'connect')
    if (connect.length === 0) return unreadablePage('section#connect is missing')
    const registered = labelledCount(connect, REGISTERED)
    if (typeof registered === 'string') return unreadablePage(registered)
    const supported = labelledCount(connect, GAMES_SUPPORTED)
    const gamesSupported = typeof supported === 'number' ? supported : undefined
    const online = labelledCount(connect, ONLINE)
    if (typeof online === 'string') return unreadablePage(online)

    const rows = tableRows(gameTables(document), 'the table of games (#games table)')
    if (typeof rows === 'string') return unreadablePage(rows)
    if (rows.length === 0 && gamesSupported !== 0)
      return unreadablePage(`the table of games is empty, yet ${gamesSupported ?? 'some'} games are supported`)
    const table = readTitleRows(rows, (cells) => readCountedTitle(cells, address))
    if (rows.length > 0 && table.rows.length === 0)
      return unreadablePage(`no row of the table of games can be read; ${table.unreadable[0] ?? ''}`)
    const { rows: titles, incomplete } = table
    const unreadable = [...(typeof supported === 'string' ? [supported] : []), ...table.unreadable]
    return { ok: true, page: { registered, gamesSupported, online, titles, unreadable, incomplete } }
  })
}

/** Returns the number over a label, or the fault. Numbers are identified by label, not by place. */
function labelledCount(connect: readonly PageElement[], label: string): number | string {
  const paragraphs = named(
    elementsIn(connect, (element) => hasClass(element, 'row')),
    'p'
  ).filter((paragraph) => textOf(paragraph).toLowerCase() === label.toLowerCase())
  const box = paragraphs[0]?.parent as PageElement | undefined
  if (paragraphs.length !== 1 || box === undefined)
    return `expected the label ${quoted(label)} once in section#connect, found it ${paragraphs.length} times`
  const [number, ...others] = childElements(box, 'h3')
  if (number === undefined || others.length > 0 || childElements(box, 'p').length !== 1)
    return `expected one number next to the label ${quoted(label)}, found ${childElements(box, 'h3').length}`
  const text = textOf(number)
  return countIn(text) ?? `expected a count above ${quoted(label)}, got ${quoted(text)}`
}

const textOf = (element: PageElement): string => visibleText(shownText(element))

function readCountedTitle(cells: readonly PageElement[], address: string): ReadRow<CountedTitle> {
  if (!isRow(cells)) return { ok: false, reason: `expected ${CELLS} cells, found ${cells.length}` }
  const [nameCell, idCell, onlineCell, lobbiesCell, iconsCell] = cells
  const listed = readListedTitle(nameCell, idCell, address)
  if (!listed.ok) return listed
  const onlineText = textOf(onlineCell)
  const online = countIn(onlineText)
  if (online === undefined) return { ok: false, reason: `expected users online, got ${quoted(onlineText)}` }
  const lobbiesText = textOf(lobbiesCell)
  const lobbies = lobbiesIn(lobbiesText)
  const features = featuresIn(iconsCell)
  return {
    ok: true,
    row: { ...listed.row, online, ...lobbies, ...(features !== undefined && { features }) },
    ...(lobbies === undefined && { incomplete: `expected "-" or "N in M sessions", got ${quoted(lobbiesText)}` })
  }
}

const isRow = (cells: readonly PageElement[]): cells is Row => cells.length === CELLS

/**
 * Returns the features with a visible icon. Icons have an order but no names, so nothing follows from a row without all
 * of them.
 */
function featuresIn(iconsCell: PageElement): CountedTitle['features'] | undefined {
  const icons = named([iconsCell], 'i')
  if (icons.length !== TITLE_FEATURES.length) return undefined
  return TITLE_FEATURES.filter((_, place) => icons[place] !== undefined && !hasClass(icons[place], 'invisible'))
}
