import { childElements, extentOf, hasCommentedOut, hasSwallowed, type PageElement } from './page-tree.js'
import { brokenTagIn, type PageSource } from './parsed-page.js'

/** Rows with equal numbers of cells, or the table's fault. */
export type StripedRows =
  | { readonly ok: true; readonly rows: readonly (readonly PageElement[])[] }
  | { readonly ok: false; readonly reason: string }

/** The most matches that one event can hold; the longest boards have some thousand entries. */
const ROWS_MAX = 100_000
const ROW_TAG = /<t[rdh][\s/>]/i
const ROW_OR_END_TAG = /<\/?t[rdh][\s/>]/i

/**
 * Returns all rows of a table of matches or of a board, without headings. One incomplete row fails the table, because a
 * missing row means that a player left.
 */
export function stripedRows(table: PageElement, source: PageSource, name: string): StripedRows {
  const fault = markupFault(table, source, name)
  if (fault !== undefined) return refused(fault)
  const rows: PageElement[][] = []
  let width: number | undefined
  for (const section of childElements(table, 'thead', 'tbody', 'tfoot')) {
    for (const row of childElements(section, 'tr')) {
      const cells = childElements(row, 'td', 'th')
      const place = rows.length + 1
      const isHeading = cells.length > 0 && cells.every((cell) => cell.name === 'th')
      if (isHeading && rows.length > 0) return refused(`${name} has a heading under row ${place - 1}`)
      const rowWidth = cells.reduce((sum, cell) => sum + columnsOf(cell), 0)
      if (!isHeading) {
        if (section.name !== 'tbody') return refused(`${name} has a row in its ${section.name}`)
        if (cells.length === 0) return refused(`row ${place} of ${name} has no cells`)
        if (width !== undefined && rowWidth !== width) {
          return refused(`row ${place} of ${name} has ${rowWidth} cells, expected ${width} as above it`)
        }
        rows.push(cells)
      }
      width = rowWidth
    }
  }
  return rows.length > ROWS_MAX ? refused(`${name} has ${rows.length} rows, more than ${ROWS_MAX}`) : { ok: true, rows }
}

/** Returns the reason why a row of a table may contain another row's cells; undefined if there is none. */
export function markupFault(table: PageElement, source: PageSource, name: string): string | undefined {
  const extent = extentOf(table)
  if (extent?.end === undefined) return `${name} is not closed: the page is truncated or broken`
  if (brokenTagIn(source, extent.start, extent.end) || hasSwallowed(table, ROW_OR_END_TAG)) {
    return `${name} has a broken tag`
  }
  if (source.spilling.has(table)) return `${name} has something between its cells: its markup is broken`
  if (hasCommentedOut(table, ROW_TAG)) return `${name} has a row inside a comment`
  return undefined
}

function columnsOf(cell: PageElement): number {
  const columns = Number(cell.attribs.colspan ?? 1)
  return Number.isInteger(columns) && columns > 0 ? columns : 1
}

function refused(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}
