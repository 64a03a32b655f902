import type { Value } from '../rows/columns.js'
import type { ColumnTypes } from '../rows/row-writer.js'

/** A row of a read, by column name; integers wider than 32 bits are strings. */
export type AnswerRow = Readonly<Record<string, unknown>>

/** Adds one row to a table: the values of its columns, in the order of the fold's `tables`. */
export type WriteRow = (table: string, values: readonly Value[]) => void

/**
 * The pure function of a projection of form `fold`: from the reads of a chunk of keys, by name, to rows. Running it
 * twice on the same facts writes the same rows. It runs in a thread without an engine. Returns `again` if the reads are
 * inconsistent because another process wrote in between; its rows are then discarded.
 */
export type FoldFunction = (
  answers: Readonly<Record<string, Iterable<AnswerRow>>>,
  write: WriteRow
) => 'again' | undefined

/** An entry of `folds.ts`. */
export type Fold = {
  readonly fold: FoldFunction
  /** The columns of the tables that it writes. */
  readonly tables: Readonly<Record<string, ColumnTypes>>
  /** By table, another one with the same columns that gets each of its rows too. */
  readonly copies?: Readonly<Record<string, string>>
  readonly basis: FoldBasis
}

/**
 * Detects that another process overtook this one between reading and storing. The stored rows may then have replaced
 * rows computed from more events, and are recomputed from the current ones.
 */
export type FoldBasis = {
  /** The table that determines all rows of a key; it has a column `position`. */
  readonly table: string
  /** The column with the instant at which a stored row begins. Absent if a row summarizes all events. */
  readonly rowsBeginAt?: string
}
