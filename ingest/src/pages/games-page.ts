import { type ParsedPage, parseHtml } from './parsed-page.js'
import { type ListedTitle, readListedTitle, readTitleRows, tableRows } from './title-table.js'
import { unreadablePage } from './unreadable-page.js'

/** The list of supported games, as far as it could be read. */
export type GamesPage = {
  readonly titles: readonly ListedTitle[]
  /** One sentence per unreadable row. */
  readonly unreadable: readonly string[]
}

const CELLS_MIN = 2

/** Parses the page of all supported games. A page without a table or without a readable row is refused. */
export function parseGamesPage(html: string, address: string): ParsedPage<GamesPage> {
  return parseHtml(html, ($) => {
    const named = $('#games table')
    const rows = tableRows($, named.length > 0 ? named : $('table'), 'the table of games')
    if (typeof rows === 'string') return unreadablePage(rows)
    if (rows.length === 0) return unreadablePage('the table of games is empty')
    const read = readTitleRows($, rows, (cells) =>
      cells.length < CELLS_MIN
        ? { ok: false, reason: `expected at least ${CELLS_MIN} cells, found ${cells.length}` }
        : readListedTitle($, cells[0], cells[1], address)
    )
    if (read.rows.length === 0) {
      return unreadablePage(`no row of the table of games can be read; ${read.unreadable[0] ?? ''}`)
    }
    return { ok: true, page: { titles: read.rows, unreadable: read.unreadable } }
  })
}
