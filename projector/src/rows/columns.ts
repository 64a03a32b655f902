import { inspect } from 'node:util'

/*
 * Columns in ClickHouse's format Native, which the engine stores without parsing: numbers as in memory, each text after
 * its length, lists as the end of each row followed by all values.
 */

/** The value of a column; an instant is milliseconds since 1970. */
export type Value =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly (string | number | null)[]
  | Readonly<Record<string, string>>

type Single = 'Bool' | 'UInt8' | 'UInt16' | 'UInt32' | 'UInt64' | 'Int32' | 'Int64' | 'String' | `DateTime64(3, 'UTC')`

/** A type of ClickHouse, as `system.columns` spells it. */
export type ColumnType =
  | Single
  | 'LowCardinality(String)'
  | `Nullable(${Single})`
  | `Array(${Single | `Nullable(${Single})`})`
  | 'Map(String, String)'

/** The values of one column. `add` throws for a value of another type; `truncate` then removes a partly added value. */
export type Column = {
  add(value: unknown): void
  /** Keeps the first `rows` values. */
  truncate(rows: number): void
  /** Returns the values in the format. The bytes change with the column. */
  parts(): Uint8Array[]
}

/** Returns an empty column. Throws for a type that is not in {@link ColumnType}. */
export function columnOf(type: string): Column {
  const inner = /^(?:Nullable|Array)\((.*)\)$/.exec(type)?.[1]
  if (inner !== undefined) {
    if (type.startsWith('Array')) return new Lists(columnOf(inner))
    return new Nullables(columnOf(inner), inner === 'String' ? '' : inner === 'Bool' ? false : 0)
  }
  if (type === 'Bool') return new Booleans()
  if (type === 'String') return new Texts()
  if (type === 'LowCardinality(String)') return new Keywords()
  if (type === 'Map(String, String)') return new Pairs()
  if (type === 'UInt64') return new WideNumbers(0)
  if (type === 'Int64' || type === `DateTime64(3, 'UTC')`) return new WideNumbers(Number.MIN_SAFE_INTEGER)
  const numbers = NUMBERS[type]
  if (numbers === undefined) throw new Error(`The type ${type} has no column: add one to columns.ts.`)
  return new Numbers(new numbers(ROWS_START))
}

const ROWS_START = 256
const TEXT_BYTES_START = 4096

const NUMBERS: Readonly<Record<string, new (length: number) => NumberArray>> = {
  UInt8: Uint8Array,
  UInt16: Uint16Array,
  UInt32: Uint32Array,
  Int32: Int32Array
}

type NumberArray =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>

class Numbers implements Column {
  #values: NumberArray
  #rows = 0

  constructor(empty: NumberArray) {
    this.#values = empty
  }

  get rows(): number {
    return this.#rows
  }

  add(value: unknown): void {
    if (this.#rows === this.#values.length) this.#grow()
    this.#values[this.#rows] = value as number
    if (this.#values[this.#rows] !== value)
      throw misfit(value, `an integer of ${8 * this.#values.BYTES_PER_ELEMENT} bits`)
    this.#rows += 1
  }

  /** The last value; 0 without one. */
  get last(): number {
    return this.#values[this.#rows - 1] ?? 0
  }

  truncate(rows: number): void {
    this.#rows = Math.min(rows, this.#rows)
  }

  parts(): Uint8Array[] {
    return [new Uint8Array(this.#values.buffer, 0, this.#rows * this.#values.BYTES_PER_ELEMENT)]
  }

  #grow(): void {
    const before = this.#values
    this.#values = new (before.constructor as new (length: number) => NumberArray)(2 * before.length)
    this.#values.set(before)
  }
}

class Booleans extends Numbers {
  constructor() {
    super(new Uint8Array(ROWS_START))
  }

  override add(value: unknown): void {
    if (typeof value !== 'boolean') throw misfit(value, 'true or false')
    super.add(Number(value))
  }
}

/** Integers of 64 bits. A number has at most 53, so that two words of 32 need no `BigInt`. */
class WideNumbers implements Column {
  readonly #least: number
  #words = new Uint32Array(2 * ROWS_START)
  #wide = new BigUint64Array(this.#words.buffer)
  #rows = 0

  constructor(least: number) {
    this.#least = least
  }

  add(value: unknown): void {
    if (this.#rows === this.#wide.length) this.#grow()
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= this.#least) {
      this.#words[2 * this.#rows] = value
      this.#words[2 * this.#rows + 1] = Math.floor(value / 2 ** 32)
    } else if (typeof value === 'bigint' && this.#least === 0 && BigInt.asUintN(64, value) === value) {
      this.#wide[this.#rows] = value
    } else throw misfit(value, 'an integer of 64 bits')
    this.#rows += 1
  }

  get last(): number {
    return Number(this.#wide[this.#rows - 1] ?? 0)
  }

  truncate(rows: number): void {
    this.#rows = Math.min(rows, this.#rows)
  }

  parts(): Uint8Array[] {
    return [new Uint8Array(this.#words.buffer, 0, 8 * this.#rows)]
  }

  #grow(): void {
    const words = new Uint32Array(2 * this.#words.length)
    words.set(this.#words)
    this.#words = words
    this.#wide = new BigUint64Array(words.buffer)
  }
}

/** Longer texts are encoded by Node; for a short one the call costs more than its characters. */
const SHORT_TEXT = 40
const ASCII_MAX = 0x7f
/** UTF-8 takes up to 3 bytes per UTF-16 unit, and the length before a text up to 5. */
const UNIT_BYTES_MAX = 3
const LENGTH_BYTES_MAX = 5

/** Texts in UTF-8. An unpaired surrogate becomes U+FFFD. */
class Texts implements Column {
  #bytes = Buffer.allocUnsafeSlow(TEXT_BYTES_START)
  readonly #ends = new Numbers(new Uint32Array(ROWS_START))

  add(value: unknown): void {
    if (typeof value !== 'string') throw misfit(value, 'a text')
    const start = this.#ends.last
    const needed = start + LENGTH_BYTES_MAX + UNIT_BYTES_MAX * value.length
    if (needed > this.#bytes.length) this.#grow(needed)
    this.#ends.add(this.#addShort(value, start) ?? this.#addAny(value, start))
  }

  truncate(rows: number): void {
    this.#ends.truncate(rows)
  }

  parts(): Uint8Array[] {
    return [this.#bytes.subarray(0, this.#ends.last)]
  }

  #addShort(text: string, start: number): number | undefined {
    if (text.length > SHORT_TEXT) return undefined
    const bytes = this.#bytes
    bytes[start] = text.length
    for (let n = 0; n < text.length; n += 1) {
      const code = text.charCodeAt(n)
      if (code > ASCII_MAX) return undefined
      bytes[start + 1 + n] = code
    }
    return start + 1 + text.length
  }

  #addAny(text: string, start: number): number {
    const at = writeLength(this.#bytes, start, Buffer.byteLength(text))
    return at + this.#bytes.write(text, at)
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length))
    this.#bytes.copy(larger, 0, 0, this.#ends.last)
    this.#bytes = larger
  }
}

/** Writes a length as a varint; returns the index after it. */
export function writeLength(bytes: Uint8Array, start: number, length: number): number {
  let at = start
  for (let rest = length; ; rest = Math.floor(rest / 128)) {
    bytes[at] = rest < 128 ? rest : (rest % 128) + 128
    at += 1
    if (rest < 128) return at
  }
}

/** The version of the format of keywords, and their flags: first a dictionary, then 32-bit indexes of its entries. */
const KEYWORDS_VERSION = 1
const KEYWORDS_FLAGS = 0x602

/** Texts from a dictionary. */
class Keywords implements Column {
  readonly #texts = new Texts()
  readonly #numbers = new Numbers(new Uint32Array(ROWS_START))
  readonly #numberOf = new Map<unknown, number>()
  #lastValue: unknown = Symbol('none')
  #lastNumber = 0

  add(value: unknown): void {
    if (value !== this.#lastValue) {
      this.#lastNumber = this.#numberOf.get(value) ?? this.#learn(value)
      this.#lastValue = value
    }
    this.#numbers.add(this.#lastNumber)
  }

  truncate(rows: number): void {
    this.#numbers.truncate(rows)
  }

  parts(): Uint8Array[] {
    const head = [KEYWORDS_VERSION, KEYWORDS_FLAGS, this.#numberOf.size]
    return [wide(head), ...this.#texts.parts(), wide([this.#numbers.rows]), ...this.#numbers.parts()]
  }

  #learn(value: unknown): number {
    this.#texts.add(value)
    this.#numberOf.set(value, this.#numberOf.size)
    return this.#numberOf.size - 1
  }
}

class Nullables implements Column {
  readonly #nulls = new Numbers(new Uint8Array(ROWS_START))
  readonly #values: Column
  readonly #empty: unknown

  constructor(values: Column, empty: unknown) {
    this.#values = values
    this.#empty = empty
  }

  add(value: unknown): void {
    this.#values.add(value === null ? this.#empty : value)
    this.#nulls.add(value === null ? 1 : 0)
  }

  truncate(rows: number): void {
    this.#values.truncate(rows)
    this.#nulls.truncate(rows)
  }

  parts(): Uint8Array[] {
    return [...this.#nulls.parts(), ...this.#values.parts()]
  }
}

class Lists implements Column {
  readonly #ends = new WideNumbers(0)
  readonly #values: Column

  constructor(values: Column) {
    this.#values = values
  }

  add(value: unknown): void {
    if (!Array.isArray(value)) throw misfit(value, 'a list')
    for (const each of value) this.#values.add(each)
    this.#ends.add(this.#ends.last + value.length)
  }

  truncate(rows: number): void {
    this.#ends.truncate(rows)
    this.#values.truncate(this.#ends.last)
  }

  parts(): Uint8Array[] {
    return [...this.#ends.parts(), ...this.#values.parts()]
  }
}

/** Objects as lists of their entries. */
class Pairs implements Column {
  readonly #ends = new WideNumbers(0)
  readonly #keys = new Texts()
  readonly #values = new Texts()

  add(value: unknown): void {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw misfit(value, 'an object')
    const entries = Object.entries(value)
    for (const [key, each] of entries) {
      this.#keys.add(key)
      this.#values.add(each)
    }
    this.#ends.add(this.#ends.last + entries.length)
  }

  truncate(rows: number): void {
    this.#ends.truncate(rows)
    this.#keys.truncate(this.#ends.last)
    this.#values.truncate(this.#ends.last)
  }

  parts(): Uint8Array[] {
    return [...this.#ends.parts(), ...this.#keys.parts(), ...this.#values.parts()]
  }
}

const wide = (numbers: readonly number[]): Uint8Array => new Uint8Array(BigUint64Array.from(numbers, BigInt).buffer)

function misfit(value: unknown, expected: string): Error {
  return new Error(`${inspect(value).slice(0, 100)} is not ${expected}`)
}
