import { errorMessage } from '@gamenet/schemas'
import { type Column, type ColumnType, columnOf, type Value, writeLength } from './columns.js'

/** The columns of a table, or some of them, by name. */
export type ColumnTypes = Readonly<Record<string, ColumnType>>

/** Rows of one table in ClickHouse's format Native, and the names of their columns. */
export type RowBlock = {
  readonly rows: number
  readonly columns: readonly string[]
  readonly native: Uint8Array<ArrayBuffer>
}

/**
 * Collects rows by column. Their bytes are built at once: the garbage collector would copy 65,000 rows repeatedly. The
 * engine stores counts in less than a third of the time that it takes to parse them as JSON.
 */
export class RowWriter {
  readonly #types: readonly (readonly [name: string, type: ColumnType])[]
  #columns: readonly Column[]
  #rows = 0

  constructor(types: ColumnTypes) {
    this.#types = Object.entries(types)
    this.#columns = this.#empty()
  }

  get rows(): number {
    return this.#rows
  }

  /** Adds one row: values in the order of the columns. Throws at a value that does not fit, and adds nothing. */
  add(values: readonly Value[]): void {
    const columns = this.#columns
    if (values.length !== columns.length)
      throw new Error(`A row has ${values.length} values; expected are ${columns.length}, one for each column.`)
    let n = 0
    try {
      for (; n < columns.length; n += 1) columns[n]?.add(values[n])
      this.#rows += 1
    } catch (error) {
      for (const column of columns) column.truncate(this.#rows)
      throw new Error(`The column ${this.#types[n]?.[0]} does not hold this row: ${errorMessage(error)}.`)
    }
  }

  /** Returns the rows in a separate buffer, and empties the writer. */
  take(): RowBlock {
    const rows = this.#rows
    const parts = rows === 0 ? [] : [lengths(this.#types.length, rows)]
    for (const [n, [name, type]] of rows === 0 ? [] : this.#types.entries())
      parts.push(lengths(name.length), Buffer.from(name), lengths(type.length), Buffer.from(type), ...this.#partsOf(n))
    this.#columns = this.#empty()
    this.#rows = 0
    return { rows, columns: this.#types.map(([name]) => name), native: joined(parts) }
  }

  #partsOf(column: number): Uint8Array[] {
    return this.#columns[column]?.parts() ?? []
  }

  #empty(): Column[] {
    return this.#types.map(([, type]) => columnOf(type))
  }
}

const LENGTHS_BYTES_MAX = 20

function lengths(...numbers: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(LENGTHS_BYTES_MAX)
  let end = 0
  for (const number of numbers) end = writeLength(bytes, end, number)
  return bytes.subarray(0, end)
}

/** Not in Node's pool: the whole buffer is transferred to another thread. */
function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}
