import { childElements, extentOf, hasCommentedOut, hasSwallowed, type PageElement } from './page-tree.js'
import { brokenTagIn, type PageSource } from './parsed-page.js'

/** Rows of cells, each row as many; or why the table cannot be trusted. */
export type StripedRows =
  | { readonly ok: true; readonly rows: readonly (readonly PageElement[])[] }
  | { readonly ok: false; readonly reason: string }

/** The most that one event can hold of matches; the longest boards have some thousands of entries. */
const ROWS_MAX = 100_000
const ROW_TAG = /<t[rdh][\s/>]/i
const ROW_OR_END_TAG = /<\/?t[rdh][\s/>]/i

/**
 * All rows of a table of matches or of a board, headings left out. One row that is not whole fails the table, for on
 * both a row that is missing says that somebody left.
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

/** Why what stands in a row of a table may be another row's; undefined when nothing says so. */
export function markupFault(table: PageElement, source: PageSource, name: string): string | undefined {
  const extent = extentOf(table)
  if (extent?.end === undefined) return `${name} is not closed: the page is cut off or broken`
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
