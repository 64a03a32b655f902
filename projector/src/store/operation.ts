import type { Parameters } from '@gamenet/schemas'
import type { Tables } from './tables.js'

/*
 * operation  one named statement on the tables, with its guarantee; each table of bookkeeping has a file of them
 * store      carries operations out: on an engine, or in the memory of the simulator
 * names      the tables that stand for others, such as those that a rebuild fills for those that serve
 */

/** A table → the table that stands for it. */
export type TableNames = ReadonlyMap<string, string>

/**
 * The tables as an operation uses them. Where a statement reads a table that may have another name, it says
 * `{title_count: Identifier}`; the table that it writes it names by `target`.
 */
export type NamedTables = Tables & {
  /** The table that is read in the place of this one. For statements in which an identifier cannot be a parameter. */
  source(table: string): string
  /** The table that is written in the place of this one. */
  target(table: string): string
}

/** A statement by its name: what carries it out, and what it takes and gives. It happens as a whole, or it rejects. */
export type Operation<Input extends readonly unknown[], Result> = {
  /** For traces: a sentence without its subject. */
  readonly name: string
  run(tables: NamedTables, ...input: Input): Promise<Result>
}

/** What a view of a store changes. */
export type StoreView = {
  /** Tables that stand for others, where operations read and write. */
  readonly names?: TableNames
  /** Tables that stand for others only where operations write. */
  readonly targets?: TableNames
  /** Aborting it kills the statement that runs. */
  readonly signal?: AbortSignal
}

/** Carries operations out, one after the other. */
export type Store = {
  do<Input extends readonly unknown[], Result>(operation: Operation<Input, Result>, ...input: Input): Promise<Result>
  /** The same store, seen through other names. */
  with(view: StoreView): Store
}

export function operation<Input extends readonly unknown[], Result>(
  name: string,
  run: Operation<Input, Result>['run']
): Operation<Input, Result> {
  return { name, run }
}

/** The store of an engine. */
export function storeOver(tables: Tables, view: StoreView = {}): Store {
  const named = namedTables(tables, view)
  return {
    do: (operation, ...input) => operation.run(named, ...input),
    with: (more) => storeOver(tables, { ...view, ...more })
  }
}

const NONE: TableNames = new Map()

function namedTables(tables: Tables, { names = NONE, targets = names, signal }: StoreView): NamedTables {
  const options = signal === undefined ? {} : { signal }
  const source = (table: string) => names.get(table) ?? table
  const bound = (sql: string, parameters: Parameters = {}): Parameters => {
    const identifiers = tablesIn(sql).map((table) => [table, source(table)] as const)
    return { ...parameters, ...Object.fromEntries(identifiers) }
  }
  const target = (table: string) => targets.get(table) ?? table
  return {
    source,
    target,
    execute: (sql, parameters) => tables.execute(sql, bound(sql, parameters), options),
    rows: (sql, parameters) => tables.rows(sql, bound(sql, parameters), options),
    json: (sql, parameters) => tables.json(sql, bound(sql, parameters), options),
    insert: (table, columns, body) => tables.insert(target(table), columns, body)
  }
}

/** The tables that a statement reads by parameters. */
export function tablesIn(sql: string): string[] {
  return [...new Set([...sql.matchAll(/\{(\w+): Identifier\}/g)].map(([, table = '']) => table))]
}

/** Rows as an insert takes them: arrays of values, in the order of its columns. */
export function linesOf(rows: readonly (readonly unknown[])[]): Uint8Array {
  return new TextEncoder().encode(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
}
