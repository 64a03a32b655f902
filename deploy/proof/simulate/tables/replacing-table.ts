/** A row by column; instants in ms. */
export type Row = Readonly<Record<string, unknown>>

export type Definition = {
  readonly key: readonly string[]
  /** The row of the highest version wins, the last one among equal versions. Without versions, the last row wins. */
  readonly version?: (row: Row) => number | bigint
}

/** A table as statements read it. */
export type ReadTable = {
  /** All unmerged rows, in the order of their insertion. */
  readonly rows: readonly Row[]
  /** As with FINAL. */
  final(): Row[]
}

/** A ReplacingMergeTree in memory: the inserted rows, and the current ones. */
export class ReplacingTable implements ReadTable {
  rows: Row[] = []
  readonly definition: Definition
  readonly #final = new Map<string, Row>()

  constructor(definition: Definition) {
    this.definition = definition
  }

  insert(rows: readonly Row[]): void {
    const { version } = this.definition
    for (const row of rows) {
      this.rows.push(row)
      const key = this.keyOf(row)
      const before = this.#final.get(key)
      if (before === undefined || version === undefined || version(row) >= version(before)) this.#final.set(key, row)
    }
  }

  final(): Row[] {
    return [...this.#final.values()]
  }

  get(key: string): Row | undefined {
    return this.#final.get(key)
  }

  /** Merges, as the engine does at times. */
  merge(): void {
    this.rows = this.final()
  }

  delete(isDeleted: (row: Row) => boolean): void {
    const left = this.rows.filter((row) => !isDeleted(row))
    this.truncate()
    this.insert(left)
  }

  truncate(): void {
    this.rows = []
    this.#final.clear()
  }

  keyOf(row: Row): string {
    return this.definition.key.map((column) => row[column]).join('|')
  }
}

/** The events of a table before an instant. */
export class EventView implements ReadTable {
  readonly #of: ReplacingTable
  readonly #beforeMs: number

  constructor(of: ReplacingTable, beforeMs: number) {
    this.#of = of
    this.#beforeMs = beforeMs
  }

  get rows(): readonly Row[] {
    return this.#of.rows.filter((row) => Number(row.observed_at) < this.#beforeMs)
  }

  final(): Row[] {
    return this.#of.final().filter((row) => Number(row.observed_at) < this.#beforeMs)
  }
}
