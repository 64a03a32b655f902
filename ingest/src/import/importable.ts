import type { Topic } from '@gamenet/schemas'

/*
 * column    a header of a CSV file, or a key of the objects of a JSON file
 * cell      what stands under a column in one row; nothing, an empty cell and null are a missing value
 * row       one event of the file, or a missing sample, or a fault
 * measured  the fields whose values were observed; a row that lacks them all is a missing sample
 */

/** How the text of a cell becomes a value. JSON values are taken as they are, but for instants. */
export type CellKind = 'instant' | 'integer' | 'text' | 'list'

/** A topic that files can be imported into: its fields, how their cells read, and which of them are measured. */
export type Importable = {
  readonly topic: Topic
  readonly fields: Readonly<Record<string, CellKind>>
  readonly measured: readonly string[]
  /** The fields that the schema does not do without. */
  readonly required: readonly string[]
}

/** Declares what a file of one topic holds. A field that the schema has and the table lacks does not compile. */
export function importable<Event extends object>(definition: {
  readonly topic: Topic<Event>
  readonly fields: { readonly [Field in keyof Event & string]-?: CellKind }
  readonly measured: readonly (keyof Event & string)[]
}): Importable {
  const nothing = definition.topic.event.safeParse({})
  const required = nothing.success ? [] : nothing.error.issues.map(({ path }) => String(path[0]))
  return { ...definition, required }
}
