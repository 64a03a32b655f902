import { instantOf } from '@gamenet/schemas'
import {
  type ByteReader,
  type ByteWriter,
  readNumbers,
  readPlanes,
  readRuns,
  readTexts,
  writeNumbers,
  writePlanes,
  writeRuns,
  writeTexts
} from './byte-column.js'

/*
 * template   what the texts of a column have in common: literals with slots between them
 * slot       a place in a template whose content changes from row to row; each has its own column of contents
 * reference  a slot that repeats what an earlier column of the same row holds (an id repeats key and time)
 *
 * A text is written as the number of the template that it matches from its first to its last character, and its
 * contents. Reading puts them together again, so every text comes back exactly, whether it is JSON or not: a wrong
 * guess about its structure costs bytes, never content.
 */

/** More different shapes than this in one batch are written as plain texts. */
const TEMPLATES_MAX = 16
/** The digits that a whole number may have so that its differences stay exact in a double. */
const DIGITS_MAX = 15

const LITERAL = 0
const TEXT = 1
const WHOLE_NUMBER = 2
const INSTANT = 3
const HEX = 4
const REFERENCE = 5
const REST = 6

type Part =
  | { readonly kind: typeof LITERAL; readonly text: string }
  | { readonly kind: typeof REFERENCE; readonly column: number }
  | { readonly kind: typeof TEXT; readonly texts: string[] }
  | { readonly kind: typeof REST; readonly texts: string[] }
  | { readonly kind: typeof WHOLE_NUMBER; readonly numbers: number[] }
  | { readonly kind: typeof INSTANT; readonly numbers: number[] }
  | { readonly kind: typeof HEX; readonly numbers: number[] }

type Template = { readonly parts: readonly Part[]; rows: number }

/** Writes a column of texts. `columns` are the columns of the same rows that were written before this one. */
export function writeTextColumn(
  writer: ByteWriter,
  texts: readonly string[],
  columns: readonly (readonly string[])[]
): void {
  const templates: Template[] = []
  let rest = -1
  const chosen: number[] = []
  let last = 0
  /** The text that `last` took; a text written as it is does not change it. */
  let lastText: string | undefined
  for (let row = 0; row < texts.length; row += 1) {
    const text = texts[row] ?? ''
    let found = -1
    const before = templates[last]
    if (before !== undefined && text === lastText && before.parts.every(isLiteral)) {
      before.rows += 1
      found = last
    } else if (before !== undefined && matches(before, text, columns, row)) found = last
    for (let i = 0; found < 0 && i < templates.length; i += 1) {
      const template = templates[i]
      if (i !== last && i !== rest && template !== undefined && matches(template, text, columns, row)) found = i
    }
    if (found < 0 && templates.length < TEMPLATES_MAX) {
      const template = templateOf(text, columns, row)
      if (matches(template, text, columns, row)) found = templates.push(template) - 1
    }
    if (found < 0) {
      if (rest < 0) rest = templates.push({ parts: [{ kind: REST, texts: [] }], rows: 0 }) - 1
      const template = templates[rest]
      if (template !== undefined) matches(template, text, columns, row)
      found = rest
    }
    chosen.push(found)
    if (found !== rest) {
      last = found
      lastText = text
    }
  }
  writer.varint(templates.length)
  for (const template of templates) writeTemplate(writer, template)
  if (templates.length > 1) writeRuns(writer, chosen)
}

function isLiteral({ kind }: Part): boolean {
  return kind === LITERAL
}

/** A stored column, whose texts are put together when they are asked for: as numbers they take a fifth of the memory. */
export type TextColumn = {
  /** True when every row holds the same text. */
  readonly isConstant: boolean
  at(row: number): string
}

/** Reads what {@link writeTextColumn} wrote. */
export function readTextColumn(reader: ByteReader, rows: number, columns: readonly TextColumn[]): TextColumn {
  const templates: Template[] = []
  for (let count = reader.varint(); count > 0; count -= 1) templates.push(readTemplate(reader))
  const chosen = templates.length > 1 ? readRuns(reader, rows) : undefined
  if (rows > 0 && (chosen ?? [0]).some((index) => templates[index] === undefined)) {
    throw new RangeError('the batch names a template that it does not hold')
  }
  return new StoredTexts(templates, chosen, columns)
}

class StoredTexts implements TextColumn {
  readonly isConstant: boolean
  readonly #templates: readonly Template[]
  readonly #chosen: readonly number[] | undefined
  /** Row → which of its template's rows it is. */
  readonly #nth: readonly number[] | undefined
  readonly #columns: readonly TextColumn[]
  /** Later columns refer to the row that was asked for last. */
  #row = -1
  #text = ''

  constructor(templates: readonly Template[], chosen: readonly number[] | undefined, columns: readonly TextColumn[]) {
    const used = templates.map(() => 0)
    this.#templates = templates
    this.#chosen = chosen
    this.#nth = chosen?.map((index) => {
      const nth = used[index] ?? 0
      used[index] = nth + 1
      return nth
    })
    this.#columns = columns
    const [only] = templates
    this.isConstant =
      templates.length === 1 &&
      only !== undefined &&
      only.parts.every(
        (part) => part.kind === LITERAL || (part.kind === REFERENCE && columns[part.column]?.isConstant === true)
      )
  }

  at(row: number): string {
    if (row !== this.#row) {
      const template = this.#templates[this.#chosen?.[row] ?? 0]
      this.#text = template === undefined ? '' : filled(template, this.#nth?.[row] ?? row, this.#columns, row)
      this.#row = row
    }
    return this.#text
  }
}

function filled(template: Template, nth: number, columns: readonly TextColumn[], row: number): string {
  let text = ''
  for (const part of template.parts) {
    if (part.kind === LITERAL) text += part.text
    else if (part.kind === REFERENCE) text += columns[part.column]?.at(row) ?? ''
    else if (part.kind === TEXT || part.kind === REST) text += part.texts[nth] ?? ''
    else if (part.kind === WHOLE_NUMBER) text += part.numbers[nth] ?? 0
    else if (part.kind === HEX) text += hexText(part.numbers[nth] ?? 0)
    else text += instantText(part.numbers[nth] ?? 0)
  }
  return text
}

/** True when the whole text fits; only then the contents of its slots are kept. */
function matches(template: Template, text: string, columns: readonly (readonly string[])[], row: number): boolean {
  let position = 0
  const { parts, rows } = template
  for (const part of parts) {
    position = matchEnd(part, text, position, columns, row)
    if (position < 0) break
  }
  const fits = position === text.length
  if (fits) template.rows += 1
  for (const part of parts) {
    if (fits) continue
    if (part.kind === TEXT || part.kind === REST) part.texts.length = rows
    else if (part.kind !== LITERAL && part.kind !== REFERENCE) part.numbers.length = rows
  }
  return fits
}

/** Where the part ends that begins at `from`, or -1. Keeps the content of a slot. */
function matchEnd(
  part: Part,
  text: string,
  from: number,
  columns: readonly (readonly string[])[],
  row: number
): number {
  switch (part.kind) {
    case LITERAL:
      return text.startsWith(part.text, from) ? from + part.text.length : -1
    case REFERENCE: {
      const content = columns[part.column]?.[row] ?? ''
      return text.startsWith(content, from) ? from + content.length : -1
    }
    case REST:
      part.texts.push(text.slice(from))
      return text.length
    case TEXT: {
      const end = quoteAfter(text, from)
      if (end < 0) return -1
      part.texts.push(text.slice(from, end))
      return end
    }
    case WHOLE_NUMBER: {
      const end = digitsEnd(text, from)
      if (end === from || end - from > DIGITS_MAX || (text.charCodeAt(from) === 48 && end - from > 1)) return -1
      part.numbers.push(Number(text.slice(from, end)))
      return end
    }
    case HEX: {
      const value = hexAt(text, from)
      if (value < 0) return -1
      part.numbers.push(value)
      return from + 8
    }
    case INSTANT: {
      const content = text.slice(from, from + (text.charCodeAt(from + 19) === 90 ? 20 : 24))
      const ms = instantMs(content)
      if (ms < 0) return -1
      part.numbers.push(ms)
      return from + content.length
    }
  }
}

/** The template that one text suggests: JSON is cut at its values, other text at references and numbers. */
function templateOf(text: string, columns: readonly (readonly string[])[], row: number): Template {
  const first = text.charCodeAt(0)
  if (first === 123 || first === 91) return { parts: jsonParts(text, columns, row), rows: 0 }
  const whole = slotOf(text, columns, row)
  return { parts: whole === undefined ? plainParts(text, columns, row) : [whole], rows: 0 }
}

function jsonParts(text: string, columns: readonly (readonly string[])[], row: number): Part[] {
  const parts: Part[] = []
  let literalFrom = 0
  const cut = (from: number, to: number, slot: Part): void => {
    if (from > literalFrom) parts.push({ kind: LITERAL, text: text.slice(literalFrom, from) })
    parts.push(slot)
    literalFrom = to
  }
  for (let i = 0; i < text.length; ) {
    const code = text.charCodeAt(i)
    if (code === 34) {
      const end = quoteAfter(text, i + 1)
      if (end < 0) break
      if (text.charCodeAt(end + 1) !== 58) {
        cut(i + 1, end, slotOf(text.slice(i + 1, end), columns, row) ?? { kind: TEXT, texts: [] })
      }
      i = end + 1
    } else if (isDigit(code)) {
      const end = digitsEnd(text, i)
      if (end - i <= DIGITS_MAX && (code !== 48 || end - i === 1)) cut(i, end, { kind: WHOLE_NUMBER, numbers: [] })
      i = end
    } else i += 1
  }
  if (literalFrom < text.length) parts.push({ kind: LITERAL, text: text.slice(literalFrom) })
  return parts
}

/** Pieces between the marks that ids and addresses are made with: a piece that an earlier column holds is a reference. */
function plainParts(text: string, columns: readonly (readonly string[])[], row: number): Part[] {
  const parts: Part[] = []
  let literal = ''
  for (const piece of text.split(/([/@#?&=|,;\s])/)) {
    const slot = slotOf(piece, columns, row)
    if (slot === undefined) literal += piece
    else {
      if (literal !== '') parts.push({ kind: LITERAL, text: literal })
      literal = ''
      parts.push(slot)
    }
  }
  if (literal !== '') parts.push({ kind: LITERAL, text: literal })
  return parts
}

function slotOf(content: string, columns: readonly (readonly string[])[], row: number): Part | undefined {
  if (content === '') return undefined
  for (let column = 0; column < columns.length; column += 1) {
    if (columns[column]?.[row] === content) return { kind: REFERENCE, column }
  }
  if (instantMs(content) >= 0) return { kind: INSTANT, numbers: [] }
  if (content.length === 8 && hexAt(content, 0) >= 0) return { kind: HEX, numbers: [] }
  return undefined
}

function writeTemplate(writer: ByteWriter, template: Template): void {
  writer.varint(template.rows)
  writer.varint(template.parts.length)
  for (const part of template.parts) {
    writer.byte(part.kind)
    if (part.kind === LITERAL) writer.text(part.text)
    else if (part.kind === REFERENCE) writer.varint(part.column)
    else if (part.kind === TEXT || part.kind === REST) writeTexts(writer, part.texts)
    else if (part.kind === HEX) writePlanes(writer, part.numbers)
    else if (part.kind === WHOLE_NUMBER) writeNumbers(writer, part.numbers)
    else writeInstants(writer, part.numbers)
  }
}

function readTemplate(reader: ByteReader): Template {
  const rows = reader.varint()
  const parts: Part[] = []
  for (let count = reader.varint(); count > 0; count -= 1) {
    const kind = reader.byte()
    if (kind === LITERAL) parts.push({ kind, text: reader.text() })
    else if (kind === REFERENCE) parts.push({ kind, column: reader.varint() })
    else if (kind === TEXT || kind === REST) parts.push({ kind, texts: readTexts(reader, rows) })
    else if (kind === HEX) parts.push({ kind, numbers: readPlanes(reader, rows) })
    else if (kind === WHOLE_NUMBER) parts.push({ kind, numbers: readNumbers(reader, rows) })
    else if (kind === INSTANT) parts.push({ kind, numbers: readInstants(reader, rows) })
    else throw new RangeError(`the batch holds a part of the unknown kind ${kind}`)
  }
  return { parts, rows }
}

/** In whole seconds when all of them are. */
function writeInstants(writer: ByteWriter, values: readonly number[]): void {
  const unit = values.every((ms) => ms % 1000 === 0) ? 1000 : 1
  writer.varint(unit)
  writeNumbers(
    writer,
    values.map((ms) => ms / unit)
  )
}

function readInstants(reader: ByteReader, count: number): number[] {
  const unit = reader.varint()
  return readNumbers(reader, count).map((value) => value * unit)
}

/** Rows next to each other mostly share their instant or its day, and making a date costs more than the rest of a row. */
let shownMs = 0
let shownText = instantOf(0)
let dayMs = 0
let dayText = shownText.slice(0, 11)

const DAY_MS = 86_400_000

function instantText(ms: number): string {
  if (ms === shownMs) return shownText
  const intoDay = ms - dayMs
  if (intoDay >= 0 && intoDay < DAY_MS && intoDay % 1000 === 0) {
    const seconds = intoDay / 1000
    const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    shownText = `${dayText}${TWO_DIGITS[clock[0] ?? 0]}:${TWO_DIGITS[clock[1] ?? 0]}:${TWO_DIGITS[clock[2] ?? 0]}Z`
  } else {
    shownText = instantOf(ms)
    if (shownText.length <= 24) {
      dayMs = Math.floor(ms / DAY_MS) * DAY_MS
      dayText = shownText.slice(0, 11)
    }
  }
  shownMs = ms
  return shownText
}

const TWO_DIGITS = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'))

/** Milliseconds of an instant in the one spelling that {@link instantText} gives back, else -1. */
function instantMs(text: string): number {
  if (text === shownText) return shownMs
  if (text.length !== 20 && text.length !== 24) return -1
  const ms = text.length === 20 && text.startsWith(dayText) ? clockMs(text) : Date.parse(text)
  return ms >= 0 && instantText(ms) === text ? ms : -1
}

/** The instant of a text on the day in mind; wrong for a text that is none, which the comparison then shows. */
function clockMs(text: string): number {
  const pair = (at: number): number => text.charCodeAt(at) * 10 + text.charCodeAt(at + 1) - 528
  return dayMs + ((pair(11) * 60 + pair(14)) * 60 + pair(17)) * 1000
}

/** Eight hexadecimal digits. */
function hexText(value: number): string {
  return value.toString(16).padStart(8, '0')
}

/** The end of the string that continues at `from`: the first quotation mark that no backslash hides, or -1. */
function quoteAfter(text: string, from: number): number {
  let end = text.indexOf('"', from)
  while (end >= 0) {
    let slashes = 0
    while (end - slashes > from && text.charCodeAt(end - slashes - 1) === 92) slashes += 1
    if (slashes % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return -1
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

function digitsEnd(text: string, from: number): number {
  let end = from
  while (isDigit(text.charCodeAt(end))) end += 1
  return end
}

/** Eight lower-case hexadecimal digits as a number, or -1. */
function hexAt(text: string, from: number): number {
  let value = 0
  for (let i = from; i < from + 8; i += 1) {
    const code = text.charCodeAt(i)
    if (isDigit(code)) value = value * 16 + code - 48
    else if (code >= 97 && code <= 102) value = value * 16 + code - 87
    else return -1
  }
  return value
}
