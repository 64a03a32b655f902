/** A row of a read, by column name; integers wider than 32 bits are strings. */
export type AnswerRow = Readonly<Record<string, unknown>>

/** Takes one row for a table of the projection's `into`: a JSON array of the values of its columns, without line end. */
export type WriteRow = (table: string, line: string) => void

/**
 * The pure part of a projection of form `fold`: what was read of a chunk of keys, by the name of the read, in; rows out. It
 * may run twice on the same facts, and then writes the same rows. It runs in a thread that knows no engine.
 * Gives `again` where the reads do not fit one another, since another process wrote between them; then nothing of it counts.
 */
export type FoldFunction = (
  answers: Readonly<Record<string, readonly AnswerRow[]>>,
  write: WriteRow
) => 'again' | undefined

/** A fold as `folds.ts` lists it. */
export type Fold = {
  readonly fold: FoldFunction
  readonly basis: FoldBasis
}

/**
 * By what a process that made rows beside others sees that it was overtaken between reading and storing: its rows may then have
 * replaced others that were made of more, and are made once more of all that there is now.
 */
export type FoldBasis = {
  /** The table that all rows of a key follow from; it has a column `position`. */
  readonly table: string
  /** The column with the instant at which a stored row begins. Absent where a row sums up all that there ever was. */
  readonly rowsBeginAt?: string
}
