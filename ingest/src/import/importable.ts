import type { Topic } from '@gamenet/schemas'

/*
 * column    a header of a CSV file, or a key of the objects of a JSON file
 * cell      what stands under a column in one row; nothing, an empty cell and null are a missing value
 * row       one event of the file, a part of one, a missing sample, or a fault
 * part      a row that makes an event only together with others, wherever in the file these stand
 * measured  the fields whose values were observed; a row that lacks them all is a missing sample
 * withheld  fields of the schema that only scrapes give; files are not asked for them
 */

/** How the text of a cell becomes a value. JSON values are taken as they are, but for instants. */
export type CellKind = 'instant' | 'integer' | 'text' | 'list'

/** What one row is. */
export type Outcome =
  | { readonly kind: 'event'; readonly event: unknown }
  | { readonly kind: 'part'; readonly part: unknown }
  | { readonly kind: 'missing' }
  | { readonly kind: 'fault'; readonly reason: string }

/** The values of one row by field; a missing value has no key. */
export type Fields = Readonly<Record<string, unknown>>

/** What became of the parts of one event: `rows` of the file make it, or are all at fault. */
export type Gathered =
  | { readonly event: unknown; readonly rows: number }
  | { readonly fault: string; readonly line: number; readonly rows: number }

/** Puts the parts of events together. Serves one reading of one file. */
export type Gathering = {
  /** Throws an `ImportRefused` when the file's parts need more memory than they may. */
  add(part: unknown, line: number): void
  /** Called once, behind the last row. */
  finish(): Iterable<Gathered>
}

/** A topic that files can be imported into: its fields, how their cells read, and which of them are measured. */
export type Importable = {
  readonly topic: Topic
  readonly fields: Readonly<Record<string, CellKind>>
  readonly measured: readonly string[]
  /** The fields that no row can do without. */
  readonly required: readonly string[]
  /** How far ahead of the clock an instant may lie, in milliseconds. */
  readonly aheadMsMax: number
  /** What a row is. `judge` does what is usual: a missing sample, else what the schema says. */
  outcome(fields: Fields, judge: (fields: Fields) => Outcome): Outcome
  /** Present where rows can be parts of events. */
  readonly gather?: () => Gathering
}

/** A clock that is set wrongly by a zone is forgiven; a year mistyped is not. */
const AHEAD_MS_MAX = 86_400_000

/** Declares what a file of one topic holds. A field that the schema has and the table lacks does not compile. */
export function importable<Event extends object, Withheld extends keyof Event & string = never>(
  definition: {
    readonly topic: Topic<Event>
    readonly fields: { readonly [Field in Exclude<keyof Event & string, Withheld>]-?: CellKind }
    readonly withheld?: readonly Withheld[]
    readonly measured: readonly (keyof Event & string)[]
  } & Partial<Pick<Importable, 'aheadMsMax' | 'outcome'>>
): Importable {
  const nothing = definition.topic.event.safeParse({})
  const required = nothing.success ? [] : nothing.error.issues.map(({ path }) => String(path[0]))
  return { aheadMsMax: AHEAD_MS_MAX, outcome: (fields, judge) => judge(fields), ...definition, required }
}
