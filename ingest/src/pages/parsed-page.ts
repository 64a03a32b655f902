import { errorMessage } from '@gamenet/schemas'
import type { CheerioAPI } from 'cheerio'
import { load } from 'cheerio/slim'
import { parse } from 'parse5'
import { adapter } from 'parse5-htmlparser2-tree-adapter'
import { unreadablePage } from './unreadable-page.js'

/** A part of a page that can be read, or not, without the other parts. */
export type PagePart<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly reason: string }

/** What the page's text shows beyond its tree. */
export type PageSource = {
  readonly html: string
  /** Where in the text a tag has a quote or `<` among its attributes' names or bare values, or an end tag attributes. */
  readonly brokenTags: readonly number[]
  /** Tables in which text or an element stood outside of all cells; browsers move it in front of the table. */
  readonly spilling: ReadonlySet<unknown>
}

/** What a parser makes of a page: its value, or one sentence on why the page is not what it must be. */
export type ParsedPage<Page> =
  | { readonly ok: true; readonly page: Page }
  | { readonly ok: false; readonly reason: string }

/**
 * Deepest nesting of elements. A browser's own limit; a real page has about ten levels, and the parser's work grows
 * with the square of them: 100,000 nested tables, 1.1 MB of text, held the process for 54 s.
 */
const NESTING_MAX = 512
/**
 * Elements of a page; a home page of 1,000 titles has 20,000, a board of 100,000 entries in 8 columns 900,000. Broken
 * markup can make far more than it has tags.
 */
const ELEMENTS_MAX = 1_000_000
const BROKEN_TAGS_MAX = 10_000
/** A tag that ran into the next one, and what browsers take for a comment though it does not begin as one. */
const BROKEN_MARKUP = /<\/?[a-z][^\s<>/]*["'=<]|<\/[^a-z]|<\?|<!(?!--)/i
/** Signs of a quote too few or too many: what stands up to the next quote, rows and all, has become a value. */
const BROKEN_TAG = new Set([
  'unexpected-character-in-attribute-name',
  'unexpected-character-in-unquoted-attribute-value',
  'end-tag-with-attributes'
])
/** The elements whose beginning and end parsers use. All others do without: they take half of the memory. */
const PLACED = new Set(['table', 'select', 'option'])

/**
 * Builds the document as browsers do and reads it. Never throws, and never works long: a page that breaks the
 * parser or its limits is a page that cannot be read.
 */
export function parseHtml<Page>(
  html: string,
  read: ($: CheerioAPI, source: PageSource) => ParsedPage<Page>
): ParsedPage<Page> {
  const brokenTags: number[] = []
  const spilling = new Set<unknown>()
  try {
    const document = parse(html, {
      sourceCodeLocationInfo: true,
      treeAdapter: limitedAdapter(spilling),
      onParseError({ code, startOffset }) {
        if (!BROKEN_TAG.has(code)) return
        if (brokenTags.length >= BROKEN_TAGS_MAX) throw new Error(`more than ${BROKEN_TAGS_MAX} broken tags`)
        brokenTags.push(startOffset)
      }
    })
    return read(load(document), { html, brokenTags, spilling })
  } catch (error) {
    return unreadablePage(`the page broke the parser: ${errorMessage(error)}`)
  }
}

/** Whether a tag between two places of the page's text is broken. */
export function brokenTagIn({ html, brokenTags }: PageSource, start: number, end: number): boolean {
  if (brokenTags.some((offset) => offset >= start && offset < end)) return true
  const text = html.slice(start, end)
  return BROKEN_MARKUP.test(text) || hasStrayEndTag(text)
}

/** Whether a text has an end tag of a name that no tag of it begins: one that was broken, and ends nothing. */
function hasStrayEndTag(text: string): boolean {
  const begun = new Set<string>()
  const ended = new Set<string>()
  for (const [, slash, name = ''] of text.matchAll(/<(\/?)([a-z][^\s<>/]*)/gi)) {
    const names = slash === '' ? begun : ended
    names.add(name.toLowerCase())
  }
  return [...ended].some((name) => !begun.has(name))
}

/** Builds the same tree as always, but gives up on a page that nests too deep or grows too large, and reports spilled nodes. */
function limitedAdapter(spilling: Set<unknown>): typeof adapter {
  let depth = 0
  let elements = 0
  return {
    ...adapter,
    createElement(...of) {
      elements += 1
      if (elements > ELEMENTS_MAX) throw new Error(`more than ${ELEMENTS_MAX} elements`)
      return withoutNamespaces(adapter.createElement(...of))
    },
    onItemPush() {
      depth += 1
      if (depth > NESTING_MAX) throw new Error(`elements nested more than ${NESTING_MAX} deep`)
    },
    onItemPop() {
      depth -= 1
    },
    insertTextBefore(parent, text, table) {
      if (text.trim() !== '') spilling.add(table)
      adapter.insertTextBefore(parent, text, table)
    },
    insertBefore(parent, node, table) {
      spilling.add(table)
      adapter.insertBefore(parent, node, table)
    },
    setNodeSourceCodeLocation(node, location) {
      if ('name' in node && PLACED.has(node.name)) adapter.setNodeSourceCodeLocation(node, location)
    }
  }
}

const NONE: Record<string, string> = Object.freeze(Object.create(null))

/**
 * Attributes have namespaces in drawings alone, which no parser reads. Three empty tables an element are more than half of
 * the memory of a long board, 480 MB for 900,000 cells. `html` and `body` take the attributes of later tags.
 */
function withoutNamespaces(element: ReturnType<typeof adapter.createElement>): typeof element {
  if (element.name === 'html' || element.name === 'body') return element
  element['x-attribsNamespace'] = NONE
  element['x-attribsPrefix'] = NONE
  for (const _ in element.attribs) return element
  element.attribs = NONE
  return element
}
