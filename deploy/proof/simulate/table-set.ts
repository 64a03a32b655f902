import { type Definition, EventView, type ReadTable, ReplacingTable, type Row } from './replacing-table.js'

/** The machine on which the engine runs. */
export type Machine = { nowMs(): number; isFull(): boolean }

/** The names of tables of rebuilds. */
const RENAMED = /^(.+)__(\d+(?:_live)?|sample_[0-9a-f]{8})$/

/** The table whose structure a table of a rebuild has; other tables' own names. */
export function baseName(table: string): string {
  return RENAMED.exec(table)?.[1] ?? table
}

/** The tables of the engine, in memory. */
export class TableSet {
  readonly machine: Machine
  readonly #tables = new Map<string, ReplacingTable>()
  readonly #views = new Map<string, EventView>()
  #lastUuid = 0

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

  /** A table that can be written. Throws, as the engine does, when there is none. */
  written(name: string): ReplacingTable {
    const table = this.#tables.get(name)
    if (table === undefined) throw new Error(`Unknown table ${name} (known are those of table-definitions.ts).`)
    return table
  }

  final(table: string): Row[] {
    return this.table(table).final()
  }

  uuidOf(name: string): string {
    return this.#views.has(name) ? `view-${name}` : this.written(name).uuid
  }

  create(name: string, as: string): void {
    this.#add(name, this.written(as).definition)
  }

  createView(name: string, of: string, beforeMs: number): void {
    this.#views.set(name, new EventView(this.written(of), beforeMs))
  }

  drop(name: string): void {
    this.#tables.delete(name)
    this.#views.delete(name)
  }

  swap(a: string, b: string): void {
    const [first, second] = [this.written(a), this.written(b)]
    this.#tables.set(a, second)
    this.#tables.set(b, first)
  }

  merge(): void {
    for (const table of this.#tables.values()) table.merge()
  }

  #add(name: string, definition: Definition): void {
    this.#lastUuid += 1
    this.#tables.set(name, new ReplacingTable(definition, `uuid-${this.#lastUuid}`))
  }
}
