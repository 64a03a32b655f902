import { named } from './page-tree.js'
import { type ParsedPage, parseHtml } from './parsed-page.js'
import { gameTables, type ListedTitle, readListedTitle, readTitleRows, tableRows } from './title-table.js'
import { unreadablePage } from './unreadable-page.js'

/** The list of supported games, as far as it could be read. */
export type GamesPage = {
  readonly titles: readonly ListedTitle[]
  /** One sentence per unreadable row. */
  readonly unreadable: readonly string[]
}

/** Parses the page of all supported games. A page without a table or without a readable row is refused. */
export function parseGamesPage(html: string, address: string): ParsedPage<GamesPage> {
  return parseHtml(html, (document) => {
    const own = gameTables(document)
    const rows = tableRows(own.length > 0 ? own : named([document], 'table'), 'the table of games')
    if (typeof rows === 'string') return unreadablePage(rows)
    if (rows.length === 0) return unreadablePage('the table of games is empty')
    const read = readTitleRows(rows, (cells) => {
      const [nameCell, idCell] = cells
      return nameCell === undefined || idCell === undefined
        ? { ok: false, reason: `expected at least 2 cells, found ${cells.length}` }
        : readListedTitle(nameCell, idCell, address)
    })
    if (read.rows.length === 0)
      return unreadablePage(`no row of the table of games can be read; ${read.unreadable[0] ?? ''}`)
    return { ok: true, page: { titles: read.rows, unreadable: read.unreadable } }
  })
}
