import { type CheerioAPI, load } from 'cheerio'
import { adapter } from 'parse5-htmlparser2-tree-adapter'

/** What a parser makes of a page: its value, or one sentence on why the page is not what it must be. */
export type ParsedPage<Page> =
  | { readonly ok: true; readonly page: Page }
  | { readonly ok: false; readonly reason: string }

/**
 * Deepest nesting of elements. A browser's own limit; a real page has about ten levels, and the parser's work grows
 * with the square of them: 100,000 nested tables, 1.1 MB of text, held the process for 54 s.
 */
const NESTING_MAX = 512
/** Elements of a page; a home page of 1,000 titles has 20,000. Broken markup can make far more than it has tags. */
const ELEMENTS_MAX = 500_000

/**
 * Builds the document as browsers do and reads it. Never throws, and never works long: a page that breaks the
 * parser or its limits is a page that cannot be read.
 */
export function parseHtml<Page>(html: string, read: ($: CheerioAPI) => ParsedPage<Page>): ParsedPage<Page> {
  try {
    return read(load(html, { sourceCodeLocationInfo: true, treeAdapter: limitedAdapter() }))
  } catch (error) {
    return unreadablePage(`the page broke the parser: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Builds the same tree as always, but gives up on a page that nests too deep or grows too large. */
function limitedAdapter(): typeof adapter {
  let depth = 0
  let elements = 0
  return {
    ...adapter,
    createElement(...of) {
      elements += 1
      if (elements > ELEMENTS_MAX) throw new Error(`more than ${ELEMENTS_MAX} elements`)
      return adapter.createElement(...of)
    },
    onItemPush() {
      depth += 1
      if (depth > NESTING_MAX) throw new Error(`elements nested more than ${NESTING_MAX} deep`)
    },
    onItemPop() {
      depth -= 1
    }
  }
}

/** The refusal of a whole page. */
export function unreadablePage(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}
