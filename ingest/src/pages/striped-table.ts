import { childElements, extentOf, hasCommentedOut, hasSwallowed, type PageElement } from './page-tree.js'
import { brokenTagIn, type PagePart, type PageSource } from './parsed-page.js'

/** The most matches that one event can hold; the longest boards have some thousand entries. */
const ROWS_MAX = 100_000
const ROW_TAG = /<t[rdh][\s/>]/i
const ROW_OR_END_TAG = /<\/?t[rdh][\s/>]/i

/**
 * Reads all rows of a table of matches or of a board, without headings. One incomplete or unreadable row fails the
 * table, because a missing row means that a player left.
 * @param read returns a row, or its fault
 */
export function stripedRows<Row>(
  table: PageElement,
  { source, name }: { readonly source: PageSource; readonly name: string },
  read: (cells: readonly PageElement[]) => Row | string
): PagePart<readonly Row[]> {
  const fault = markupFault(table, source, name)
  if (fault !== undefined) return refused(fault)
  const rows: Row[] = []
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
        if (width !== undefined && rowWidth !== width)
          return refused(`row ${place} of ${name} has ${rowWidth} cells, expected ${width} as above it`)
        const row = read(cells)
        if (typeof row === 'string') return refused(`row ${place} of ${name}: ${row}`)
        rows.push(row)
      }
      width = rowWidth
    }
  }
  return rows.length > ROWS_MAX
    ? refused(`${name} has ${rows.length} rows, more than ${ROWS_MAX}`)
    : { ok: true, value: rows }
}

/** Returns the reason why a row of a table may contain another row's cells; undefined if there is none. */
export function markupFault(table: PageElement, source: PageSource, name: string): string | undefined {
  const extent = extentOf(table)
  if (extent?.end === undefined) return `${name} is not closed: the page is truncated or broken`
  if (brokenTagIn(source, extent.start, extent.end) || hasSwallowed(table, ROW_OR_END_TAG))
    return `${name} has a broken tag`
  if (source.spilling.has(table)) return `${name} has something between its cells: its markup is broken`
  if (hasCommentedOut(table, ROW_TAG)) return `${name} has a row inside a comment`
  return undefined
}

function columnsOf(cell: PageElement): number {
  const columns = Number(cell.attribs.colspan ?? 1)
  return Number.isInteger(columns) && columns > 0 ? columns : 1
}

const refused = (reason: string): { ok: false; reason: string } => ({ ok: false, reason })
