import { type Operation, type RowBlock, RowWriter, readRows } from '@gamenet/projector/internals'
import type { PlainFold } from '../tables/plain-folds.js'
import type { ReadTable, ReplacingTable, Row } from '../tables/replacing-table.js'
import type { Machine, TableSet } from '../tables/table-set.js'

/** The tables as one operation sees them, under the names of its view. */
export type Seen = {
  readonly machine: Machine
  /** All tables, by their own names. */
  readonly tables: TableSet
  /** The plain folds of SQL projections, by their names or their statements. */
  readonly folds: Readonly<Record<string, PlainFold>>
  /** Maps the name of a table or a checkpoint to the one that is read, back, and to the one that is written. */
  source(name: string): string
  nameOf(source: string): string | undefined
  target(name: string): string
  table(name: string): ReadTable
  final(name: string): Row[]
  /** Returns the table that is written under this name. */
  written(name: string): ReplacingTable
  /** Adds rows, with the columns that the engine fills in. */
  insert(table: string, rows: readonly Row[]): void
  insertBlock(table: string, block: RowBlock): void
}

// biome-ignore lint/suspicious/noExplicitAny: one table has operations of any input.
export type AnyOperation = Operation<any, any>

/** The execution of an operation in memory. */
export type Implementation = {
  readonly operation: AnyOperation
  /** `insert` adds rows; `statement` changes tables in other ways. */
  readonly kind: 'read' | 'insert' | 'statement'
  run(seen: Seen, input: readonly unknown[], share: number): unknown
  /** For inserts: returns the part of the input that a failed insert has stored; undefined if none. */
  cut?(input: readonly unknown[], share: number): readonly unknown[] | undefined
  /** Factor of the fault rates, above 1 for rare operations. */
  readonly risk?: number
  readonly freesSpace?: true
  /** True if the engine's answer differs, because it depends on its machine or its hashes. */
  isOfMachine?(input: readonly unknown[]): boolean
}

type InputOf<Of extends AnyOperation> = Of extends Operation<infer Input, unknown> ? Input : never
type ResultOf<Of extends AnyOperation> = Of extends Operation<never, infer Result> ? Result : never
type Run<Of extends AnyOperation> = (seen: Seen, ...input: InputOf<Of>) => ResultOf<Of>

/** Implements a read. */
export function reading<Of extends AnyOperation>(
  operation: Of,
  run: Run<Of>,
  isOfMachine: (...input: InputOf<Of>) => boolean = () => false
): Implementation {
  return {
    operation,
    kind: 'read',
    run: (seen, input) => run(seen, ...(input as InputOf<Of>)),
    isOfMachine: (input) => isOfMachine(...(input as InputOf<Of>))
  }
}

/** Implements an insert. If it fails, the part given by `cut` may be stored, else nothing. */
export function inserting<Of extends AnyOperation>(
  operation: Of,
  run: Run<Of>,
  cut?: (input: InputOf<Of>, share: number) => readonly unknown[]
): Implementation {
  return {
    operation,
    kind: 'insert',
    run: (seen, input) => run(seen, ...(input as InputOf<Of>)),
    ...(cut === undefined ? {} : { cut: (input, share) => cut(input as InputOf<Of>, share) })
  }
}

/** Implements another statement, which executes a share of its effect if it is interrupted. */
export function changing<Of extends AnyOperation>(
  operation: Of,
  run: (seen: Seen, input: InputOf<Of>, share: number) => void,
  more: Pick<Implementation, 'risk' | 'freesSpace'> = {}
): Implementation {
  return { operation, kind: 'statement', run: (seen, input, share) => run(seen, input as InputOf<Of>, share), ...more }
}

/** Implements another statement, which is all or nothing. */
export function changingWhole<Of extends AnyOperation>(
  operation: Of,
  run: Run<Of>,
  more: Pick<Implementation, 'risk' | 'freesSpace'> = {}
): Implementation {
  return changing(operation, (seen, input, share) => void (share === 1 && run(seen, ...input)), more)
}

export const always = (): boolean => true

/** Returns the first values of a list, by share. */
export function part<Value>(values: readonly Value[], share: number): Value[] {
  return values.slice(0, Math.floor(values.length * share))
}

/** Returns the first rows of a block, by share. */
export function partOfBlock(block: RowBlock, share: number): RowBlock {
  const { types, rows } = readRows(block)
  const writer = new RowWriter(types)
  for (const row of part(rows, share)) writer.add(Object.values(row))
  return writer.take()
}
