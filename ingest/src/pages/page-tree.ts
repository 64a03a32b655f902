import type { Htmlparser2TreeAdapterMap } from 'parse5-htmlparser2-tree-adapter'
import { lineText } from './page-text.js'

/*
 * Long tables are read straight from the tree: a selector for each cell of 100,000 rows takes as long as the parsing itself.
 */

export type PageElement = Htmlparser2TreeAdapterMap['element']
type PageNode = Htmlparser2TreeAdapterMap['childNode']

/** What a browser does not show. */
const HIDDEN = new Set(['script', 'style', 'template', 'noscript'])
const NESTING_MAX = 512

/** The elements that are an element's children, of these names where any are given. */
export function childElements(parent: PageElement, ...names: readonly string[]): PageElement[] {
  return parent.children.filter(
    (node): node is PageElement => isElement(node) && (names.length === 0 || names.includes(node.name))
  )
}

/** Whether a node is an element. */
export function isElement(node: PageNode): node is PageElement {
  return 'attribs' in node
}

/** An element's text as a browser shows it in a line, a line break as a space. */
export function shownText(element: PageElement): string {
  return lineText(textIn(element, 0))
}

/** Whether an element's class names have this one. */
export function hasClass(element: PageElement, name: string): boolean {
  return (element.attribs.class ?? '').split(/[ \t\n\f\r]+/).includes(name)
}

/** Whether a comment inside an element holds one of these tags: rows that a reader does not see. */
export function hasCommentedOut(element: PageElement, tag: RegExp): boolean {
  return element.children.some((node) =>
    node.type === 'comment' ? 'data' in node && tag.test(node.data) : isElement(node) && hasCommentedOut(node, tag)
  )
}

/** Whether the value of an attribute inside an element holds one of these tags: what a quote too many swallowed, rows and all. */
export function hasSwallowed(element: PageElement, tag: RegExp): boolean {
  return element.children.some((node) => isElement(node) && (hasTagAsValue(node, tag) || hasSwallowed(node, tag)))
}

function hasTagAsValue({ attribs }: PageElement, tag: RegExp): boolean {
  for (const name in attribs) if (tag.test(attribs[name] ?? '')) return true
  return false
}

/** Where an element begins and, when its end tag stands on the page, ends; undefined without a place in the source. */
export function extentOf(element: PageElement): { readonly start: number; readonly end?: number } | undefined {
  const location = element.sourceCodeLocation
  if (location == null) return undefined
  const isClosed = 'endTag' in location && location.endTag !== undefined
  return { start: location.startOffset, ...(isClosed && { end: location.endOffset }) }
}

function textIn(element: PageElement, depth: number): string {
  let text = ''
  for (const node of element.children) {
    if (node.type === 'text') text += 'data' in node ? node.data : ''
    else if (isElement(node) && depth < NESTING_MAX) {
      if (node.name === 'br') text += ' '
      else if (!HIDDEN.has(node.name)) text += textIn(node, depth + 1)
    }
  }
  return text
}
