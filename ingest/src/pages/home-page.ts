import { TITLE_FEATURES, visibleText } from '@gamenet/schemas'
import type { CheerioAPI } from 'cheerio'
import { countIn, lobbiesIn, quoted } from './page-text.js'
import { type ParsedPage, parseHtml } from './parsed-page.js'
import {
  type Elements,
  type ListedTitle,
  type ReadRow,
  readListedTitle,
  readTitleRows,
  tableRows
} from './title-table.js'
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

/**
 * Parses the network's home page. A page without its two counts of users or its table of games is refused as a whole.
 */
export function parseHomePage(html: string, address: string): ParsedPage<HomePage> {
  return parseHtml(html, ($) => {
    if ($('section#connect').length === 0) return unreadablePage('section#connect is missing')
    const registered = labelledCount($, REGISTERED)
    if (typeof registered === 'string') return unreadablePage(registered)
    const supported = labelledCount($, GAMES_SUPPORTED)
    const gamesSupported = typeof supported === 'number' ? supported : undefined
    const online = labelledCount($, ONLINE)
    if (typeof online === 'string') return unreadablePage(online)

    const rows = tableRows($, $('#games table'), 'the table of games (#games table)')
    if (typeof rows === 'string') return unreadablePage(rows)
    if (rows.length === 0 && gamesSupported !== 0) {
      return unreadablePage(`the table of games is empty, yet ${gamesSupported ?? 'some'} games are supported`)
    }
    const table = readTitleRows($, rows, (cells) => readCountedTitle($, cells, address))
    if (rows.length > 0 && table.rows.length === 0) {
      return unreadablePage(`no row of the table of games can be read; ${table.unreadable[0] ?? ''}`)
    }
    const { rows: titles, incomplete } = table
    const unreadable = [...(typeof supported === 'string' ? [supported] : []), ...table.unreadable]
    return { ok: true, page: { registered, gamesSupported, online, titles, unreadable, incomplete } }
  })
}

/** Returns the number over a label, or the fault. Numbers are identified by label, not by place. */
function labelledCount($: CheerioAPI, label: string): number | string {
  const paragraphs = $('section#connect .row p').filter((_, p) => hasLabel($(p), label))
  if (paragraphs.length !== 1) {
    return `expected the label ${quoted(label)} once in section#connect, found it ${paragraphs.length} times`
  }
  const box = paragraphs.parent()
  const numbers = box.children('h3')
  if (numbers.length !== 1 || box.children('p').length !== 1) {
    return `expected one number next to the label ${quoted(label)}, found ${numbers.length}`
  }
  const text = visibleText(numbers.text())
  return countIn(text) ?? `expected a count above ${quoted(label)}, got ${quoted(text)}`
}

function hasLabel(paragraph: Elements, label: string): boolean {
  return visibleText(paragraph.text()).toLowerCase() === label.toLowerCase()
}

function readCountedTitle($: CheerioAPI, cells: readonly Elements[], address: string): ReadRow<CountedTitle> {
  if (cells.length !== CELLS) return { ok: false, reason: `expected ${CELLS} cells, found ${cells.length}` }
  const [nameCell, idCell, onlineCell, lobbiesCell, iconsCell] = cells
  const listed = readListedTitle($, nameCell, idCell, address)
  if (!listed.ok) return listed
  const onlineText = visibleText(onlineCell?.text() ?? '')
  const online = countIn(onlineText)
  if (online === undefined) return { ok: false, reason: `expected users online, got ${quoted(onlineText)}` }
  const lobbiesText = visibleText(lobbiesCell?.text() ?? '')
  const lobbies = lobbiesIn(lobbiesText)
  const features = featuresIn($, iconsCell)
  return {
    ok: true,
    row: { ...listed.row, online, ...lobbies, ...(features !== undefined && { features }) },
    ...(lobbies === undefined && { incomplete: `expected "-" or "N in M sessions", got ${quoted(lobbiesText)}` })
  }
}

/**
 * Returns the features with a visible icon. Icons have an order but no names, so nothing follows from a row without all
 * of them.
 */
function featuresIn($: CheerioAPI, iconsCell: Elements | undefined): CountedTitle['features'] | undefined {
  const icons = iconsCell?.find('i').toArray() ?? []
  if (icons.length !== TITLE_FEATURES.length) return undefined
  return TITLE_FEATURES.filter((_, place) => !$(icons[place]).hasClass('invisible'))
}
