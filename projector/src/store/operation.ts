import { type Parameters, withTableNames } from '@gamenet/schemas'
import type { Tables } from './tables.js'

/*
 * operation  one named statement on the tables, with its guarantee; each table of bookkeeping has a file of them
 * store      carries operations out: on an engine, or in the memory of the simulator
 * names      the engine's tables and checkpoints, by the names that statements use: those of one generation of each
 *            owner
 */

/** A table, or an owner's checkpoint → the one that is used instead. */
export type TableNames = ReadonlyMap<string, string>

/**
 * The tables as an operation uses them. A statement reads a table that may have another name as
 * `{title_count: Identifier}`, and gets the name of the table that it writes from `target`.
 */
export type NamedTables = Tables & {
  /**
   * Returns the table, or the checkpoint, that is read instead of this one, for statements without parameters for
   * identifiers.
   */
  source(name: string): string
  /** Returns the inverse of `source`; undefined for a name that this view does not show. */
  nameOf(source: string): string | undefined
  /** Returns the table, or the checkpoint, that is written instead of this one. */
  target(name: string): string
}

/** A named statement: its input, its result and its execution. It succeeds as a whole, or it rejects. */
export type Operation<Input extends readonly unknown[], Result> = {
  /** For traces: a sentence without its subject. */
  readonly name: string
  run(tables: NamedTables, ...input: Input): Promise<Result>
}

/** The changes of a view of a store. */
export type StoreView = {
  /** Tables that replace others for reads and writes. */
  readonly names?: TableNames
  /** Tables that replace others for writes only. */
  readonly targets?: TableNames
  /** Its abort kills the running statement. */
  readonly signal?: AbortSignal
}

/** Carries operations out, one after the other. */
export type Store = {
  do<Input extends readonly unknown[], Result>(operation: Operation<Input, Result>, ...input: Input): Promise<Result>
  /** Waits until queries see all rows of tables, by the engine's names, that any process has stored before. */
  sync(tables: readonly string[]): Promise<void>
  /** Returns the same store with other names. */
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
    sync: async (names) => await tables.sync?.(names),
    with: (more) => storeOver(tables, { ...view, ...more })
  }
}

const NONE: TableNames = new Map()

function namedTables(tables: Tables, { names = NONE, targets = names, signal }: StoreView): NamedTables {
  const options = signal === undefined ? {} : { signal }
  const source = (table: string) => names.get(table) ?? table
  const bound = (sql: string, parameters: Parameters = {}) => withTableNames(sql, parameters, source)
  const target = (table: string) => targets.get(table) ?? table
  return {
    source,
    nameOf: nameIn(names),
    target,
    execute: (sql, parameters) => tables.execute(sql, bound(sql, parameters), options),
    rows: (sql, parameters) => tables.rows(sql, bound(sql, parameters), options),
    json: (sql, parameters) => tables.json(sql, bound(sql, parameters), options),
    insert: (table, columns, body) => tables.insert(target(table), columns, body)
  }
}

/** Returns the inverse of names; undefined for a table that another name hides. */
export function nameIn(names: TableNames): (used: string) => string | undefined {
  const inverse = new Map([...names].map(([name, used]) => [used, name]))
  return (used) => inverse.get(used) ?? (names.has(used) ? undefined : used)
}

/** Rows as an insert takes them: arrays of values, in the order of its columns. */
export function linesOf(rows: readonly (readonly unknown[])[]): Uint8Array {
  return new TextEncoder().encode(rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
}
