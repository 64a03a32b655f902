/** A row by column; instants in ms. */
export type Row = Readonly<Record<string, unknown>>

export type Definition = {
  readonly key: readonly string[]
  /** The row that counts of a key: that of the highest version, of equal ones the last; without it, the last. */
  readonly version?: (row: Row) => number | bigint
}

/** A ReplacingMergeTree in memory: what was inserted, and what counts of it. */
export class ReplacingTable {
  /** All rows that are not merged away, in the order of their insertion. */
  rows: Row[] = []
  readonly #final = new Map<string, Row>()
  readonly #definition: Definition

  constructor(definition: Definition) {
    this.#definition = definition
  }

  insert(rows: readonly Row[]): void {
    const { version } = this.#definition
    for (const row of rows) {
      this.rows.push(row)
      const key = this.keyOf(row)
      const before = this.#final.get(key)
      if (before === undefined || version === undefined || version(row) >= version(before)) this.#final.set(key, row)
    }
  }

  /** As with FINAL. */
  final(): Row[] {
    return [...this.#final.values()]
  }

  get(key: string): Row | undefined {
    return this.#final.get(key)
  }

  /** What merges of the engine do now and then. */
  merge(): void {
    this.rows = this.final()
  }

  keyOf(row: Row): string {
    return this.#definition.key.map((column) => row[column]).join('|')
  }
}
