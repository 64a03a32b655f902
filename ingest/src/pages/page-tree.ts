import { lineText } from '@gamenet/schemas'
import type { Htmlparser2TreeAdapterMap } from 'parse5-htmlparser2-tree-adapter'

/* The parsers read the tree of parse5 itself: a selector per cell of 100,000 rows takes as long as the parsing. */

export type PageElement = Htmlparser2TreeAdapterMap['element']
export type PageDocument = Htmlparser2TreeAdapterMap['document']
type PageNode = Htmlparser2TreeAdapterMap['childNode']

/** Elements that a browser does not show. */
const HIDDEN = new Set(['script', 'style', 'template', 'noscript'])
const NESTING_MAX = 512

/** Returns the child elements, optionally only those with these names. */
export function childElements(parent: PageElement, ...names: readonly string[]): PageElement[] {
  return parent.children.filter(
    (node): node is PageElement => isElement(node) && (names.length === 0 || names.includes(node.name))
  )
}

/** Returns all elements below some others that match, each once, in the order of the page. */
export function elementsIn(
  parents: readonly (PageDocument | PageElement)[],
  matches: (element: PageElement) => boolean
): PageElement[] {
  const found = new Set<PageElement>()
  const visit = (parent: PageDocument | PageElement): void => {
    for (const node of parent.children) {
      if (!isElement(node)) continue
      if (matches(node)) found.add(node)
      visit(node)
    }
  }
  for (const parent of parents) visit(parent)
  return [...found]
}

/** Returns all elements of a name below others, each once, in the order of the page. */
export function named(parents: readonly (PageDocument | PageElement)[], name: string): PageElement[] {
  return elementsIn(parents, (element) => element.name === name)
}

/** Returns the innermost element of a name around a node. */
export function closest({ parent }: PageNode, name: string): PageElement | undefined {
  if (parent === null || !isElement(parent as PageNode)) return undefined
  const around = parent as PageElement
  return around.name === name ? around : closest(around, name)
}

/** Returns whether a node is an element. */
export const isElement = (node: PageNode): node is PageElement => 'attribs' in node

/** Returns an element's text as a browser shows it in a line; a line break is a space. */
export const shownText = (element: PageElement): string => lineText(textIn(element.children, 0))

/** Returns an element's text up to its first element of these names. */
export function shownTextBefore(element: PageElement, ...names: readonly string[]): string {
  const end = element.children.findIndex((node) => isElement(node) && names.includes(node.name))
  return lineText(textIn(end === -1 ? element.children : element.children.slice(0, end), 0))
}

/** Returns whether an element has this class. */
export function hasClass(element: PageElement, name: string): boolean {
  return (element.attribs.class ?? '').split(/[ \t\n\f\r]+/).includes(name)
}

/** Returns whether a comment inside an element contains one of these tags: rows that a reader does not see. */
export function hasCommentedOut(element: PageElement, tag: RegExp): boolean {
  return element.children.some((node) =>
    node.type === 'comment' ? 'data' in node && tag.test(node.data) : isElement(node) && hasCommentedOut(node, tag)
  )
}

/**
 * Returns whether an attribute value inside an element contains one of these tags: a superfluous quote swallows whole
 * rows.
 */
export function hasSwallowed(element: PageElement, tag: RegExp): boolean {
  return element.children.some((node) => isElement(node) && (hasTagAsValue(node, tag) || hasSwallowed(node, tag)))
}

function hasTagAsValue({ attribs }: PageElement, tag: RegExp): boolean {
  for (const name in attribs) if (tag.test(attribs[name] ?? '')) return true
  return false
}

/**
 * Returns the start of an element and, if its end tag is on the page, its end; undefined without a place in the source.
 */
export function extentOf(element: PageElement): { readonly start: number; readonly end?: number } | undefined {
  const location = element.sourceCodeLocation
  if (location == null) return undefined
  const isClosed = 'endTag' in location && location.endTag !== undefined
  return { start: location.startOffset, ...(isClosed && { end: location.endOffset }) }
}

function textIn(nodes: readonly PageNode[], depth: number): string {
  let text = ''
  for (const node of nodes) {
    if (node.type === 'text') text += 'data' in node ? node.data : ''
    else if (isElement(node) && depth < NESTING_MAX) {
      if (node.name === 'br') text += ' '
      else if (!HIDDEN.has(node.name)) text += textIn(node.children, depth + 1)
    }
  }
  return text
}
