import type { Cheerio, CheerioAPI } from 'cheerio'
import { quoted, visibleText } from './page-text.js'

/*
 * The tables of the home page and of the games page have the same first two cells:
 *   <a><img src></a> <a href="…/games/ID">TITLE</a><br><small>SUBTITLE</small>  |  CODE<br><small>TITLE ID</small>
 */

/** Elements of a document. */
export type Elements = ReturnType<CheerioAPI>
type Node = Elements extends Cheerio<infer N> ? N : never

/** What the first two cells of a row say about a title. What a page leaves out is absent. */
export type ListedTitle = {
  /** 8 hexadecimal digits, lower case. */
  readonly titleId: string
  readonly name: string
  readonly subtitle?: string
  readonly productCode?: string
  /** Absolute address. */
  readonly image?: string
}

/** A row as far as it could be read. */
export type ReadRow<Row> = { readonly ok: true; readonly row: Row } | { readonly ok: false; readonly reason: string }

/** The rows of a table by title, and a sentence for each that could not be read. */
export type TitleRows<Row> = { readonly rows: readonly Row[]; readonly unreadable: readonly string[] }

const TITLE_ID = /^[0-9a-f]{8}$/
/** What the schema of a title takes. */
const TEXT_LENGTH_MAX = 500
const IMAGE_LENGTH_MAX = 2048
/** A page of 8 MiB could hold more; no network has as many titles. */
const ROWS_MAX = 20_000

/**
 * The rows of tables, or why they cannot be trusted: a page that was cut off shows itself by a table that is
 * never closed, and its last row may have lost digits.
 */
export function tableRows($: CheerioAPI, tables: Elements, name: string): Elements[] | string {
  if (tables.length === 0) return `${name} is missing`
  for (const table of tables.toArray()) {
    const location = 'sourceCodeLocation' in table ? table.sourceCodeLocation : undefined
    if (location == null || !('endTag' in location) || location.endTag === undefined) {
      return `${name} is not closed: the page is cut off or broken`
    }
  }
  const rows = tables
    .find('tbody tr')
    .toArray()
    .map((row) => $(row))
    .filter((row) => !isHeading(row))
  return rows.length > ROWS_MAX ? `${name} has ${rows.length} rows, more than ${ROWS_MAX}` : rows
}

/**
 * Reads every row. A title id that stands twice makes all of its rows unreadable: nobody can say which of them
 * is the title's.
 */
export function readTitleRows<Row extends ListedTitle>(
  $: CheerioAPI,
  rows: readonly Elements[],
  read: (cells: Elements[]) => ReadRow<Row>
): TitleRows<Row> {
  const readable: { row: Row; place: number }[] = []
  const places = new Map<string, number[]>()
  const unreadable: string[] = []
  for (const [index, row] of rows.entries()) {
    const cells = row
      .children('td')
      .toArray()
      .map((cell) => $(cell))
    const place = index + 1
    const outcome = read(cells)
    const titleId = outcome.ok ? outcome.row.titleId : titleIdIn(cells[1])
    if (titleId !== undefined) places.set(titleId, [...(places.get(titleId) ?? []), place])
    if (outcome.ok) readable.push({ row: outcome.row, place })
    else unreadable.push(`row ${place}${rowName($, cells)}: ${outcome.reason}`)
  }
  for (const [titleId, at] of places) {
    if (at.length > 1) unreadable.push(`title id ${titleId} stands on the rows ${listed(at)}`)
  }
  return {
    rows: readable.filter(({ row }) => places.get(row.titleId)?.length === 1).map(({ row }) => row),
    unreadable
  }
}

/** Reads a row's first two cells. `address` is the page's own. */
export function readListedTitle(
  $: CheerioAPI,
  nameCell: Elements | undefined,
  idCell: Elements | undefined,
  address: string
): ReadRow<ListedTitle> {
  const titleId = titleIdIn(idCell)
  if (titleId === undefined) {
    return {
      ok: false,
      reason: `expected a title id of 8 hexadecimal digits, got ${quoted(visibleText(idCell?.text() ?? ''))}`
    }
  }
  const link = nameLink($, nameCell)
  const name = textBeforeBreak($, link)
  if (name === '' || name.length > TEXT_LENGTH_MAX) {
    return { ok: false, reason: `expected a name of 1 to ${TEXT_LENGTH_MAX} characters, got ${quoted(name)}` }
  }
  const linkedId = titleIdOfLink(link?.attr('href'))
  if (linkedId !== undefined && linkedId !== titleId) {
    return { ok: false, reason: `the link is to title ${linkedId}, the id beside it is ${titleId}` }
  }
  const subtitle = knownText(nameCell?.find('small').first().text())
  const productCode = knownText(textBeforeBreak($, idCell))
  const image = imageAddress(nameCell?.find('img').first().attr('src'), address)
  return {
    ok: true,
    row: {
      titleId,
      name,
      ...(subtitle !== undefined && { subtitle }),
      ...(productCode !== undefined && { productCode }),
      ...(image !== undefined && { image })
    }
  }
}

function isHeading(row: Elements): boolean {
  return row.children('th').length > 0 && row.children('td').length === 0
}

function titleIdIn(idCell: Elements | undefined): string | undefined {
  const small = idCell?.find('small')
  if (small?.length !== 1) return undefined
  const text = visibleText(small.text()).toLowerCase()
  return TITLE_ID.test(text) ? text : undefined
}

/** The link that has text; the other one holds the picture. */
function nameLink($: CheerioAPI, nameCell: Elements | undefined): Elements | undefined {
  const links = nameCell?.find('a').toArray() ?? []
  return links.map((link) => $(link)).find((link) => textBeforeBreak($, link) !== '')
}

/** An element's text up to its first `br` or `small`; a tag that is not closed reaches further than its text. */
function textBeforeBreak($: CheerioAPI, element: Elements | undefined): string {
  let text = ''
  for (const node of element?.contents().toArray() ?? []) {
    if (isBreak(node)) break
    if (node.type === 'text' || node.type === 'tag') text += $(node).text()
  }
  return visibleText(text)
}

function isBreak(node: Node): boolean {
  return 'tagName' in node && (node.tagName === 'br' || node.tagName === 'small')
}

/** The id in a link's last path segment; undefined where it is something else, such as a product code. */
function titleIdOfLink(href: string | undefined): string | undefined {
  const segment = /\/([^/?#]*)\/?(?:[?#].*)?$/.exec(href ?? '')?.[1]?.toLowerCase()
  return segment !== undefined && TITLE_ID.test(segment) ? segment : undefined
}

function knownText(text: string | undefined): string | undefined {
  const visible = visibleText(text ?? '')
  return visible === '' || visible.length > TEXT_LENGTH_MAX ? undefined : visible
}

function imageAddress(source: string | undefined, address: string): string | undefined {
  const trimmed = source?.trim() ?? ''
  if (trimmed === '' || !URL.canParse(trimmed, address)) return undefined
  const url = new URL(trimmed, address)
  const isWeb = url.protocol === 'http:' || url.protocol === 'https:'
  return isWeb && url.href.length <= IMAGE_LENGTH_MAX ? url.href : undefined
}

/** How the reason calls a row: by title id, else by name, else by its number alone. */
function rowName($: CheerioAPI, cells: readonly Elements[]): string {
  const titleId = titleIdIn(cells[1])
  if (titleId !== undefined) return ` (${titleId})`
  const name = textBeforeBreak($, nameLink($, cells[0]))
  return name === '' ? '' : ` (${quoted(name)})`
}

function listed(places: readonly number[]): string {
  const shown = places.slice(0, 5).join(', ')
  return places.length > 5 ? `${shown} and ${places.length - 5} more` : shown
}
