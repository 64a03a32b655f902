import { visibleText } from '@gamenet/schemas'
import { placesText, quoted } from './page-text.js'
import {
  childElements,
  closest,
  elementsIn,
  extentOf,
  named,
  type PageDocument,
  type PageElement,
  shownText,
  shownTextBefore
} from './page-tree.js'

/*
 * The tables of the home page and of the games page have the same first two cells:
 *   <a><img src></a> <a href="…/games/ID">TITLE</a><br><small>SUBTITLE</small>  |  CODE<br><small>TITLE ID</small>
 */

/** The title in the first two cells of a row. Values that the page omits are absent. */
export type ListedTitle = {
  /** 8 hexadecimal digits, lower case. */
  readonly titleId: string
  readonly name: string
  readonly subtitle?: string
  readonly productCode?: string
  /** Absolute address. */
  readonly image?: string
}

/** A row, with the reason why it lacks a field, or the reason why it is unreadable. */
export type ReadRow<Row> =
  | { readonly ok: true; readonly row: Row; readonly incomplete?: string }
  | { readonly ok: false; readonly reason: string }

/** The rows of a table, and a sentence per unreadable and per incomplete one. */
export type TitleRows<Row> = {
  readonly rows: readonly Row[]
  readonly unreadable: readonly string[]
  readonly incomplete: readonly string[]
}

const TITLE_ID = /^[0-9a-f]{8}$/
const PRODUCT_CODE = /^[a-z0-9]{2}-\d{3}$/
/** The limit of the schema of a title. */
const TEXT_LENGTH_MAX = 500
const IMAGE_LENGTH_MAX = 2048
/** A page of 8 MiB could contain more; no network has as many titles. */
const ROWS_MAX = 20_000

/** Returns the tables inside an element with the id `games`. */
export function gameTables(document: PageDocument): PageElement[] {
  return named(
    elementsIn([document], ({ attribs }) => attribs.id === 'games'),
    'table'
  )
}

/**
 * Returns the rows of tables, or the fault: a truncated page has an unclosed table, and its last row may have lost
 * digits.
 */
export function tableRows(tables: readonly PageElement[], name: string): PageElement[] | string {
  if (tables.length === 0) return `${name} is missing`
  if (tables.some((table) => extentOf(table)?.end === undefined))
    return `${name} is not closed: the page is truncated or broken`
  const rows = named(named(tables, 'tbody'), 'tr').filter((row) => !isHeading(row))
  return rows.length > ROWS_MAX ? `${name} has ${rows.length} rows, more than ${ROWS_MAX}` : rows
}

/** Reads every row. A repeated title id makes all of its rows unreadable, because any of them could be wrong. */
export function readTitleRows<Row extends ListedTitle>(
  rows: readonly PageElement[],
  read: (cells: readonly PageElement[]) => ReadRow<Row>
): TitleRows<Row> {
  const readable: { row: Row; place: number }[] = []
  const places = new Map<string, number[]>()
  const unreadable: string[] = []
  const incomplete: string[] = []
  for (const [index, row] of rows.entries()) {
    const cells = childElements(row, 'td')
    const place = index + 1
    const outcome = read(cells)
    const titleId = outcome.ok ? outcome.row.titleId : titleIdIn(cells[1])
    if (titleId !== undefined) places.set(titleId, [...(places.get(titleId) ?? []), place])
    if (outcome.ok) readable.push({ row: outcome.row, place })
    const sentence = (reason: string) => `row ${place}${rowName(cells)}: ${reason}`
    if (!outcome.ok) unreadable.push(sentence(outcome.reason))
    else if (outcome.incomplete !== undefined) incomplete.push(sentence(outcome.incomplete))
  }
  for (const [titleId, at] of places) {
    if (at.length > 1) unreadable.push(`title id ${titleId} is on the rows ${placesText(at)}`)
  }
  return {
    rows: readable.filter(({ row }) => places.get(row.titleId)?.length === 1).map(({ row }) => row),
    unreadable,
    incomplete
  }
}

/** Reads a row's first two cells. `address` is the page's address. */
export function readListedTitle(nameCell: PageElement, idCell: PageElement, address: string): ReadRow<ListedTitle> {
  const titleId = titleIdIn(idCell)
  if (titleId === undefined)
    return {
      ok: false,
      reason: `expected a title id of 8 hexadecimal digits, got ${quoted(visibleText(shownText(idCell)))}`
    }
  const two = namesOfTwo(nameCell)
  if (two !== undefined) return { ok: false, reason: two }
  const [link] = nameLinks(nameCell)
  const name = link === undefined ? '' : textBeforeBreak(link)
  if (name === '' || name.length > TEXT_LENGTH_MAX)
    return { ok: false, reason: `expected a name of 1 to ${TEXT_LENGTH_MAX} characters, got ${quoted(name)}` }
  const subtitle = knownText(named([nameCell], 'small').map(shownText)[0])
  const productCode = knownText(textBeforeBreak(idCell))
  const elsewhere = linkElsewhere(link?.attribs.href, titleId, productCode)
  if (elsewhere !== undefined) return { ok: false, reason: elsewhere }
  const image = imageAddress(ownPicture(nameCell, link)?.attribs.src, address)
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

function isHeading(row: PageElement): boolean {
  return childElements(row, 'th').length > 0 && childElements(row, 'td').length === 0
}

function titleIdIn(idCell: PageElement | undefined): string | undefined {
  const [small, ...others] = idCell === undefined ? [] : named([idCell], 'small')
  if (small === undefined || others.length > 0) return undefined
  const text = visibleText(shownText(small)).toLowerCase()
  return TITLE_ID.test(text) ? text : undefined
}

/**
 * Returns the fault of a row that combines two titles: lost markup between two rows joins the name of the first with
 * the id of the second.
 */
function namesOfTwo(nameCell: PageElement): string | undefined {
  const found = [
    { count: nameLinks(nameCell).length, what: 'link with a name' },
    { count: named([nameCell], 'small').length, what: 'subtitle' }
  ].find(({ count }) => count > 1)
  return found && `expected one ${found.what}, found ${found.count}: the title's is unknown`
}

/** Returns the only picture of a cell, unless it links to another page than the name. */
function ownPicture(nameCell: PageElement, link: PageElement | undefined): PageElement | undefined {
  const [picture, ...others] = named([nameCell], 'img')
  if (picture === undefined || others.length > 0) return undefined
  const leadsTo = closest(picture, 'a')?.attribs.href
  return leadsTo === undefined || leadsTo === link?.attribs.href ? picture : undefined
}

/** Returns the links with text; the other one contains the picture. */
function nameLinks(nameCell: PageElement): PageElement[] {
  return named([nameCell], 'a').filter((link) => textBeforeBreak(link) !== '')
}

/** Returns an element's text up to its first `br` or `small`; an unclosed tag extends beyond its text. */
const textBeforeBreak = (element: PageElement): string => visibleText(shownTextBefore(element, 'br', 'small'))

/** Returns the fault of a link that does not end in its title's id or product code. */
function linkElsewhere(href: string | undefined, titleId: string, productCode: string | undefined): string | undefined {
  const segment = /\/([^/?#]*)\/?(?:[?#].*)?$/.exec(href ?? '')?.[1]?.toLowerCase() ?? ''
  if (TITLE_ID.test(segment) && segment !== titleId)
    return `the link is to title ${segment}, the id next to it is ${titleId}`
  if (productCode !== undefined && PRODUCT_CODE.test(segment) && segment !== productCode.toLowerCase())
    return `the link is to product ${segment.toUpperCase()}, the code next to it is ${quoted(productCode)}`
  return undefined
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

/** Returns a row's name for reasons: title id, else name, else number. */
function rowName([nameCell, idCell]: readonly PageElement[]): string {
  const titleId = titleIdIn(idCell)
  if (titleId !== undefined) return ` (${titleId})`
  const [link] = nameCell === undefined ? [] : nameLinks(nameCell)
  return link === undefined ? '' : ` (${quoted(textBeforeBreak(link))})`
}
