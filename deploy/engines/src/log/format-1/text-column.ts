import { instantOf } from '@gamenet/schemas'
import { type ByteReader, readNumbers, readPlanes, readRuns, readTexts } from './byte-column.js'

/*
 * template   the common part of a column's texts: literals with slots between them
 * slot       a place in a template whose content differs per row; each slot has its own column of contents
 * reference  a slot that repeats the value of an earlier column of the same row (an id repeats key and time)
 *
 * A text is stored as the number of its template and its contents.
 */

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

/** A stored column. Texts are built on request: as numbers they take a fifth of the memory. */
export type TextColumn = {
  /** True if all rows have the same text. */
  readonly isConstant: boolean
  at(row: number): string
}

/** Reads a column of texts. */
export function readTextColumn(reader: ByteReader, rows: number, columns: readonly TextColumn[]): TextColumn {
  const templates: Template[] = []
  for (let count = reader.varint(); count > 0; count -= 1) templates.push(readTemplate(reader))
  const chosen = templates.length > 1 ? readRuns(reader, rows) : undefined
  if (rows > 0 && (chosen ?? [0]).some((index) => templates[index] === undefined)) {
    throw new RangeError('the batch refers to a template that it does not contain')
  }
  return new StoredTexts(templates, chosen, columns)
}

class StoredTexts implements TextColumn {
  readonly isConstant: boolean
  readonly #templates: readonly Template[]
  readonly #chosen: readonly number[] | undefined
  /** Index of a row among the rows of its template. */
  readonly #nth: readonly number[] | undefined
  readonly #columns: readonly TextColumn[]
  /** The last requested row, which later columns refer to. */
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
    else throw new RangeError(`the batch contains a part of the unknown kind ${kind}`)
  }
  return { parts, rows }
}

/** Reads instants in whole seconds or milliseconds. */
function readInstants(reader: ByteReader, count: number): number[] {
  const unit = reader.varint()
  return readNumbers(reader, count).map((value) => value * unit)
}

/**
 * Cache of the last date: neighbouring rows mostly share their instant or day, and formatting a date costs more than
 * the rest of a row.
 */
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

/** Returns eight hexadecimal digits. */
function hexText(value: number): string {
  return value.toString(16).padStart(8, '0')
}
