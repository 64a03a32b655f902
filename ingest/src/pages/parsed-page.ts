import { errorMessage } from '@gamenet/schemas'
import { parse } from 'parse5'
import { adapter } from 'parse5-htmlparser2-tree-adapter'
import type { PageDocument } from './page-tree.js'
import { unreadablePage } from './unreadable-page.js'

/** A part of a page, readable or not regardless of the other parts. */
export type PagePart<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly reason: string }

/** Facts about the page's text that its tree lacks. */
export type PageSource = {
  readonly html: string
  /** Places of broken tags: a quote or `<` among attribute names or bare values, or an end tag with attributes. */
  readonly brokenTags: readonly number[]
  /** Tables with text or an element outside of all cells; browsers move it in front of the table. */
  readonly spilling: ReadonlySet<unknown>
}

/** The result of a parser: the page's value, or one sentence about the fault. */
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
/** A tag that ran into the next one, or text that browsers treat as a comment although it does not begin as one. */
const BROKEN_MARKUP = /<\/?[a-z][^\s<>/]*["'=<]|<\/[^a-z]|<\?|<!(?!--)/i
/** Parse errors of unbalanced quotes: the text up to the next quote, rows included, has become a value. */
const BROKEN_TAG = new Set([
  'unexpected-character-in-attribute-name',
  'unexpected-character-in-unquoted-attribute-value',
  'end-tag-with-attributes'
])
/** The elements whose start and end parsers use. The positions of all others would take half of the memory. */
const PLACED = new Set(['table', 'select', 'option'])

/**
 * Builds the document as browsers do and parses it. Never throws and never runs long: a page that breaks the parser or
 * its limits counts as unreadable.
 */
export function parseHtml<Page>(
  html: string,
  read: (document: PageDocument, source: PageSource) => ParsedPage<Page>
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
    return read(document, { html, brokenTags, spilling })
  } catch (error) {
    return unreadablePage(`the page broke the parser: ${errorMessage(error)}`)
  }
}

/** Returns whether a tag between two places of the page's text is broken. */
export function brokenTagIn({ html, brokenTags }: PageSource, start: number, end: number): boolean {
  if (brokenTags.some((offset) => offset >= start && offset < end)) return true
  const text = html.slice(start, end)
  return BROKEN_MARKUP.test(text) || hasStrayEndTag(text)
}

/** Returns whether a text has an end tag without a start tag. */
function hasStrayEndTag(text: string): boolean {
  const begun = new Set<string>()
  const ended = new Set<string>()
  for (const [, slash, name = ''] of text.matchAll(/<(\/?)([a-z][^\s<>/]*)/gi)) {
    const names = slash === '' ? begun : ended
    names.add(name.toLowerCase())
  }
  return [...ended].some((name) => !begun.has(name))
}

/** Builds the usual tree, but stops at a page that nests too deep or grows too large, and reports spilled nodes. */
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
 * Removes the maps of attribute namespaces, which only drawings use. Three empty maps per element are more than half of
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
