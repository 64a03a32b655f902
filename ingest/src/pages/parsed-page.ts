import { type CheerioAPI, load } from 'cheerio'

/** What a parser makes of a page: its value, or one sentence on why the page is not what it must be. */
export type ParsedPage<Page> =
  | { readonly ok: true; readonly page: Page }
  | { readonly ok: false; readonly reason: string }

/** Reads a page's text. `address` is the page's own absolute address, against which relative ones resolve. */
export type PageParser<Page> = (html: string, address: string) => ParsedPage<Page>

/**
 * Builds the document as browsers do and reads it. Never throws: a page that breaks the parser itself (elements
 * nested so deep that the stack ends) is a page that cannot be read.
 */
export function parseHtml<Page>(html: string, read: ($: CheerioAPI) => ParsedPage<Page>): ParsedPage<Page> {
  try {
    return read(load(html, { sourceCodeLocationInfo: true }))
  } catch (error) {
    return unreadablePage(`the page broke the parser: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** The refusal of a whole page. */
export function unreadablePage(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}
