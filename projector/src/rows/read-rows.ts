import type { ColumnType, Value } from './columns.js'
import type { ColumnTypes, RowBlock } from './row-writer.js'

/** The rows of a block, and the types of their columns. */
type ReadRows = { readonly types: ColumnTypes; readonly rows: readonly Record<string, Value>[] }

/** Reads the rows that a `RowWriter` has written; instants are milliseconds since 1970. */
export function readRows({ native }: RowBlock): ReadRows {
  const bytes = new Bytes(native)
  const types: Record<string, ColumnType> = {}
  const rows: Record<string, Value>[] = []
  while (!bytes.isAtEnd) {
    const columns = bytes.length()
    const first = rows.length
    for (let count = bytes.length(), n = 0; n < count; n += 1) rows.push({})
    for (let n = 0; n < columns; n += 1) {
      const name = bytes.text()
      const type = bytes.text()
      types[name] = type as ColumnType
      const values = valuesOf(bytes, type, rows.length - first)
      for (const [at, value] of values.entries()) (rows[first + at] as Record<string, Value>)[name] = value
    }
  }
  return { types, rows }
}

class Bytes {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  length(): number {
    let length = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes.readUInt8(this.#at)
      this.#at += 1
      length += (byte % 128) * factor
      if (byte < 128) return length
    }
  }

  text(): string {
    const length = this.length()
    this.#at += length
    return this.#bytes.toString('utf8', this.#at - length, this.#at)
  }

  number(size: 1 | 2 | 4 | 8, isSigned = false): number {
    return Number(this.integer(size, isSigned))
  }

  /** Returns a `bigint` if a number would lose digits. */
  integer(size: 1 | 2 | 4 | 8, isSigned: boolean): number | bigint {
    const at = this.#at
    this.#at += size
    if (size < 8) return isSigned ? this.#bytes.readIntLE(at, size) : this.#bytes.readUIntLE(at, size)
    const wide = isSigned ? this.#bytes.readBigInt64LE(at) : this.#bytes.readBigUInt64LE(at)
    return Number.isSafeInteger(Number(wide)) ? Number(wide) : wide
  }
}

const SIZES: Readonly<Record<string, 1 | 2 | 4 | 8>> = { Bool: 1, UInt8: 1, UInt16: 2, UInt32: 4, Int32: 4 }

function valuesOf(bytes: Bytes, type: string, rows: number): Value[] {
  const each = <Item>(read: () => Item, count = rows): Item[] => Array.from({ length: count }, read)
  if (type === 'String') return each(() => bytes.text())
  if (type === 'Bool') return each(() => bytes.number(1) === 1)
  if (type === 'LowCardinality(String)') {
    const [, , known = 0] = each(() => bytes.number(8), 3)
    const texts = each(() => bytes.text(), known)
    return each(() => bytes.number(4), bytes.number(8)).map((n) => texts[n] ?? '')
  }
  const inner = /^(?:Nullable|Array)\((.*)\)$/.exec(type)?.[1]
  if (type.startsWith('Nullable') && inner !== undefined) {
    const nulls = each(() => bytes.number(1))
    return valuesOf(bytes, inner, rows).map((value, n) => (nulls[n] === 1 ? null : value))
  }
  if (inner !== undefined || type === 'Map(String, String)') {
    const ends = each(() => bytes.number(8))
    const listOf = <Item>(values: readonly Item[], n: number) => values.slice(ends[n - 1] ?? 0, ends[n])
    const count = ends.at(-1) ?? 0
    const values = valuesOf(bytes, inner ?? 'String', count) as (string | number | null)[]
    if (inner !== undefined) return ends.map((_, n) => listOf(values, n))
    const entries = valuesOf(bytes, 'String', count).map((value, n) => [values[n], value])
    return ends.map((_, n) => Object.fromEntries(listOf(entries, n)))
  }
  return each(() => bytes.integer(SIZES[type] ?? 8, !type.startsWith('UInt')))
}
