import type { Topic } from '@gamenet/schemas'
import type { Spelling } from './spelling.js'

/*
 * column    a header of a CSV file, or a key of the objects of a JSON file
 * cell      the value of a column in one row; no value, an empty cell and null are a missing value
 * row       one event of the file, a part of one, a missing sample, or a fault
 * part      a row that forms an event only with others, which may be anywhere in the file
 * measured  the fields with observed values; a row without any of them is a missing sample
 * withheld  fields of the schema that only scrapes provide
 */

/**
 * How the text of a cell becomes a value; only a name may be `null` or `-`. JSON values are used as they are, except
 * instants.
 */
export type CellKind = 'instant' | 'integer' | 'text' | 'name' | 'list'

/** The result of one row. */
export type Outcome =
  | { readonly kind: 'event'; readonly event: unknown }
  | { readonly kind: 'part'; readonly part: unknown }
  | { readonly kind: 'missing' }
  | { readonly kind: 'fault'; readonly reason: string }

/** The values of one row by field; a missing value has no key. */
export type Fields = Readonly<Record<string, unknown>>

/** The result of the parts of one event: `rows` of the file form it, or all have the same fault. */
export type Gathered =
  | { readonly event: unknown; readonly rows: number }
  | { readonly fault: string; readonly line: number; readonly rows: number }

/** Combines parts to events. An instance serves one read of one file. */
export type Gathering = {
  /** Throws `import_refused` when the file's parts exceed the memory limit. */
  add(part: unknown, line: number): void
  /** Called once, after the last row. */
  finish(): Iterable<Gathered>
}

/** The reading of one file by a topic whose rows explain one another. */
export type Opened = Pick<Importable, 'outcome'> & {
  /** Called with every row before the first outcome. */
  see?(fields: Fields): void
  /** Sentences for the report, about the rows of one pass. */
  notes(): string[]
}

/** A topic for imports: its fields, how their cells are parsed, and which of them are measured. */
export type Importable = {
  readonly topic: Topic
  readonly fields: Readonly<Record<string, CellKind>>
  readonly measured: readonly string[]
  /** The fields that every row needs. */
  readonly required: readonly string[]
  /** Longest distance of an instant into the future, in milliseconds. */
  readonly aheadMsMax: number
  /** Returns the result of a row. `judge` is the default: a missing sample, else the schema's result. */
  outcome(fields: Fields, judge: (fields: Fields) => Outcome): Outcome
  /** Identifies what an event of the topic replaces; default: its key and instant. */
  sameAs?(event: never): string
  /** Present if events of one instant are states, ordered by their values; equal states are one. */
  stateOf?(event: never): string
  /** Present if the outcome of a row depends on others of its file. */
  readonly open?: (spelling: Spelling) => Opened
  /** Present if rows can be parts of events. */
  readonly gather?: () => Gathering
}

/** Tolerates a clock in the wrong time zone, but not a mistyped year. */
const AHEAD_MS_MAX = 86_400_000

/** Declares the file format of one topic. A field of the schema that the table lacks is a type error. */
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
