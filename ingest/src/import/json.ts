import { errorMessage } from '@gamenet/schemas'
import type { Cut, Cutter, Row } from './rows.js'

/** A list of 10,000 lobbies is about 700 KB. */
const ROW_CHARS_MAX = 1_048_576
/** No field needs more than four levels; recursion over a value overflows the stack at some thousand. */
const LEVELS_MAX = 32

/** The object of one row, or its fault. */
export type RowObject =
  | { readonly line: number; readonly object: Readonly<Record<string, unknown>> }
  | { readonly line: number; readonly fault: string }

/** Divides NDJSON into rows: one object per line; blank lines are skipped. */
export function ndjsonCutter(): Cutter {
  return { rowCharsMax: ROW_CHARS_MAX, cut: cutLine, forced: () => undefined, endFault: () => undefined }
}

function cutLine(text: string, from: number): Cut {
  const start = skipBlanks(text, from)
  if (start > from) return { kind: 'between', next: start }
  const newline = text.indexOf('\n', start)
  if (newline === -1) return 'more'
  return { kind: 'row', start, end: newline, next: newline + 1 }
}

/**
 * Divides a JSON array into its elements only by brackets and strings; JSON.parse validates each element. An unclosed
 * element costs the lines up to the next one that begins with `{`.
 */
export function arrayCutter(): Cutter {
  let place: 'before' | 'inside' | 'behind' | 'done' = 'before'
  let isLost = false
  return {
    rowCharsMax: ROW_CHARS_MAX,
    cut(text, from) {
      const start = skipBlanks(text, from)
      if (start > from) return { kind: 'between', next: start }
      if (place === 'done') return { kind: 'between', next: text.length }
      const first = text.charCodeAt(start)
      if (place === 'before' && first === BRACKET_OPEN) {
        place = 'inside'
        return { kind: 'between', next: start + 1 }
      }
      if (place === 'behind') {
        place = 'done'
        return { kind: 'fault', start, next: text.length, reason: 'there is text after the end of the array' }
      }
      if (isLost && first !== BRACE_OPEN && first !== BRACKET_CLOSED) return skipLine(text, start)
      isLost = false
      if (first === BRACKET_CLOSED) place = 'behind'
      if (first === BRACKET_CLOSED || first === COMMA) return { kind: 'between', next: start + 1 }
      const element = cutElement(text, start)
      if (element === 'more' || element.brokenAt === undefined) return element
      const newline = text.indexOf('\n', start)
      if (newline === -1 || newline > element.brokenAt) return element
      isLost = true
      return { kind: 'row', start, end: newline, next: newline + 1 }
    },
    forced() {
      isLost = true
    },
    endFault() {
      const isOpen = place === 'before' || place === 'inside'
      return isOpen ? 'the array is not closed; the file seems to be truncated' : undefined
    }
  }
}

function skipLine(text: string, from: number): Cut {
  const newline = text.indexOf('\n', from)
  return newline === -1 ? 'more' : { kind: 'between', next: newline + 1 }
}

type Element = { readonly kind: 'row'; readonly start: number; readonly end: number; readonly next: number } & {
  /** Where the text is invalid: a line ends inside a string, or a bracket closes another kind. */
  readonly brokenAt?: number
}

/** Cuts an element from its first character. A broken one may extend far into the following elements. */
function cutElement(text: string, start: number): Element | 'more' {
  const open: number[] = []
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    switch (code) {
      case QUOTE: {
        const closing = stringEnd(text, at + 1)
        if (closing === text.length) return 'more'
        if (text.charCodeAt(closing) === NEWLINE) return { ...element(start, closing), brokenAt: closing }
        at = closing
        break
      }
      case BRACE_OPEN:
      case BRACKET_OPEN:
        open.push(code)
        break
      case BRACE_CLOSED:
      case BRACKET_CLOSED: {
        const opened = open.pop()
        // A scalar before the array's end, or a closing bracket without an opening one.
        if (opened === undefined) return element(start, Math.max(at, start + 1))
        // In ASCII, each closing bracket follows its opening one by two.
        if (code !== opened + 2) return { ...element(start, at + 1), brokenAt: at }
        if (open.length === 0) return element(start, at + 1)
        break
      }
      case COMMA:
        if (open.length === 0) return element(start, at)
        break
    }
  }
  return 'more'
}

const element = (start: number, end: number): Element => ({ kind: 'row', start, end, next: end })

const NEWLINE = 0x0a
const QUOTE = 0x22
const COMMA = 0x2c
const BRACKET_OPEN = 0x5b
const BACKSLASH = 0x5c
const BRACKET_CLOSED = 0x5d
const BRACE_OPEN = 0x7b
const BRACE_CLOSED = 0x7d

/**
 * Returns the index of the closing quote, or of the line end that breaks the string, or the text's end if neither is in
 * this block.
 */
function stringEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE || code === NEWLINE) return at
    if (code === BACKSLASH) at += 1
  }
  return text.length
}

function skipBlanks(text: string, from: number): number {
  let at = from
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== 0x09 && code !== NEWLINE && code !== 0x0d) break
  }
  return at
}

/** Parses the objects of rows. */
export const objectsOf = (rows: readonly Row[]): readonly RowObject[] => rows.map(objectOf)

function objectOf(row: Row): RowObject {
  if (row.fault !== undefined) return { line: row.line, fault: row.fault }
  try {
    const object: unknown = JSON.parse(row.text)
    if (isDeeper(object, LEVELS_MAX))
      return { line: row.line, fault: `the row is nested deeper than ${LEVELS_MAX} levels` }
    if (typeof object === 'object' && object !== null && !Array.isArray(object))
      return { line: row.line, object: object as Record<string, unknown> }
    return { line: row.line, fault: 'the row is not a JSON object' }
  } catch (error) {
    const reason = errorMessage(error)
    return { line: row.line, fault: `the row is not valid JSON: ${reason.slice(0, 200)}` }
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}
