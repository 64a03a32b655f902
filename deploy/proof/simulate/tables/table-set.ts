import { type Definition, EventView, type ReadTable, ReplacingTable, type Row } from './replacing-table.js'

/** The machine on which the engine runs. */
export type Machine = {
  nowMs(): number
  isFull(): boolean
  /** The ids of statements that may still store rows. */
  runningInserts(): string[]
}

/** The names of generations, and of copies and samples. */
const RENAMED = /^(.+)__(\d+(?:_live)?|sample_[0-9a-f]{8})$/

/** Returns the table of a generation, a copy or a sample; for other tables the name itself. */
export function baseName(table: string): string {
  return RENAMED.exec(table)?.[1] ?? table
}

/** A statement names a missing table. */
export class UnknownTable extends Error {
  /** ClickHouse's UNKNOWN_TABLE. */
  readonly code = '60'
}

/** The tables of the engine, in memory. */
export class TableSet {
  readonly machine: Machine
  /** Called after a table or a view is created or dropped. */
  onTable: (what: 'created' | 'dropped', name: string) => void = () => undefined
  readonly #tables = new Map<string, ReplacingTable>()
  readonly #views = new Map<string, EventView>()

  constructor(definitions: Readonly<Record<string, Definition>>, machine: Machine) {
    this.machine = machine
    for (const [name, definition] of Object.entries(definitions)) this.#add(name, definition)
  }

  get names(): string[] {
    return [...this.#tables.keys(), ...this.#views.keys()]
  }

  has(name: string): boolean {
    return this.#tables.has(name) || this.#views.has(name)
  }

  table(name: string): ReadTable {
    return this.#views.get(name) ?? this.written(name)
  }

  /** Returns a writable table. Throws, as the engine does, if there is none. */
  written(name: string): ReplacingTable {
    const table = this.#tables.get(name)
    if (table === undefined) throw new UnknownTable(`Unknown table ${name} (known are those of table-definitions.ts).`)
    return table
  }

  final(table: string): Row[] {
    return this.table(table).final()
  }

  create(name: string, as: string): void {
    this.#add(name, this.written(as).definition)
    this.onTable('created', name)
  }

  createView(name: string, of: string, beforeMs: number): void {
    this.#views.set(name, new EventView(this.written(of), beforeMs))
    this.onTable('created', name)
  }

  drop(name: string): void {
    if (!this.has(name)) return
    this.#views.delete(name)
    this.#tables.delete(name)
    this.onTable('dropped', name)
  }

  merge(): void {
    for (const table of this.#tables.values()) table.merge()
  }

  #add(name: string, definition: Definition): void {
    this.#tables.set(name, new ReplacingTable(definition))
  }
}
