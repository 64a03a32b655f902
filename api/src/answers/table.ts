import { z } from 'zod'
import type { StatementLimits, StreamFormat } from '../read-tables.js'
import { jsonSchema } from './components.js'

/*
 * table       an answer as rows and columns, for programs that read files: CSV, NDJSON, Parquet, Arrow
 * row         the schema of a row; its fields are the columns, in their order
 */

/** How the answer of an endpoint becomes a table. */
export type Table<Resolved = unknown> = {
  readonly row: z.ZodObject
  /** The rows of a body. */
  rows(body: unknown): readonly object[]
  /** Returns the columns of the answer; without this function, or undefined: all. */
  columns?(resolved: Resolved): readonly string[] | undefined
  /**
   * Returns the statement that selects any number of rows; it replaces `rows`, and the limits of the endpoint's
   * `answer`. Every parameter is bound.
   */
  select?(resolved: Resolved): TableStatement
  /** The error of a request whose statement failed before its first row; default: the failure itself. */
  failure?(error: unknown): unknown
}

/** A statement that the engine streams in a file format. */
export type TableStatement = {
  readonly sql: string
  readonly parameters: Readonly<Record<string, unknown>>
  readonly limits?: StatementLimits
  readonly isQuestion?: boolean
}

/** Returns the table of a body that is a list of rows. */
export function listOf(answer: z.ZodArray<z.ZodObject>): Table {
  return { row: answer.element, rows: (body) => body as object[] }
}

/**
 * Returns the table of a body that is a list of rows of several kinds: the columns of all, null where a kind has
 * none.
 */
export function listOfKinds(answer: z.ZodArray<z.ZodDiscriminatedUnion<readonly z.ZodObject[]>>): Table {
  const kinds = answer.element.options
  const fields = Object.assign({}, ...kinds.map(({ shape }) => shape)) as z.ZodRawShape
  const isShared = (name: string) => kinds.every(({ shape }) => name in shape)
  const columns = Object.entries(fields).map(([name, field]) => [name, isShared(name) ? field : z.optional(field)])
  return { row: z.object(Object.fromEntries(columns)), rows: (body) => body as object[] }
}

/** Returns the table of a body that has its rows by key. */
export function valuesOf(answer: z.ZodRecord<z.ZodString, z.ZodObject>): Table {
  return { row: answer.valueType, rows: (body) => Object.values(body as Record<string, object>) }
}

/** Returns the table of a body with one list of rows. */
export function listIn<Field extends string>(
  answer: z.ZodObject<Readonly<Record<Field, z.ZodArray<z.ZodObject>>>>,
  field: Field
): Table {
  return { row: answer.shape[field].element, rows: (body) => (body as Record<Field, object[]>)[field] }
}

type Column = { readonly name: string; readonly type: string; readonly isText: boolean; readonly isNested: boolean }

/** Returns the statement of a table that the engine selects. */
export function selectedTable<Resolved>(
  table: Table<Resolved>,
  resolved: Resolved,
  format: StreamFormat
): TableStatement | undefined {
  const selected = table.select?.(resolved)
  if (selected === undefined) return undefined
  return { ...selected, sql: shownFrom(`(${selected.sql})`, columnsOf(table, resolved), format) }
}

/**
 * Returns the statement of a table whose rows are in an answer. They are its parameter, so that the engine writes all
 * files.
 */
export function answeredTable<Resolved>(
  table: Table<Resolved>,
  { resolved, body }: { readonly resolved: Resolved; readonly body: unknown },
  format: StreamFormat
): TableStatement {
  const columns = columnsOf(table, resolved)
  const structure = columns.map(({ name, type }) => `\`${name}\` ${type}`).join(', ')
  const literal = `'${structure.replaceAll("'", "\\'")}'`
  const lines = table.rows(body).map((each) => JSON.stringify(plain(each as Record<string, unknown>, columns)))
  // The engine refuses to read columns from an empty text.
  if (lines.length === 0) return { sql: shownFrom(`null(${literal})`, columns, format), parameters: {} }
  const source = `format(JSONEachRow, ${literal}, {rows: String})`
  return { sql: shownFrom(source, columns, format), parameters: { rows: lines.join('\n') } }
}

function columnsOf<Resolved>({ row, columns }: Table<Resolved>, resolved: Resolved): readonly Column[] {
  // A schema with an id would become a reference.
  const { properties = {}, required = [] } = jsonSchema(z.object(row.shape), 'output') as {
    properties?: Record<string, Schema>
    required?: string[]
  }
  const names = columns?.(resolved) ?? Object.keys(properties)
  return names.map((name) => columnOf(name, properties[name] ?? {}, required.includes(name)))
}

type Schema = {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly pattern?: string
  readonly anyOf?: readonly Schema[]
}

function columnOf(name: string, schema: Schema, isRequired: boolean): Column {
  // `null` is a further schema, or a further type of one.
  const { type: types = [] } = schema
  const possible = schema.anyOf ?? [types].flat().map((each) => ({ ...schema, type: each }))
  const present = possible.find((each) => each.type !== 'null') ?? schema
  const type = typeOf(present)
  const isNested = type === undefined
  const isNullable = !isRequired || possible.some((each) => each.type === 'null')
  const shown = type ?? 'String'
  return { name, type: isNullable ? `Nullable(${shown})` : shown, isText: shown === 'String', isNested }
}

/** Returns the engine's type of a value; undefined for objects and lists, which become texts of JSON. */
function typeOf({ type, format, pattern }: Schema): string | undefined {
  if (type === 'integer') return format === 'uint64' ? 'UInt64' : 'Int64'
  if (type === 'number') return 'Float64'
  if (type === 'boolean') return 'Bool'
  if (type !== 'string') return undefined
  if (format === 'date-time' || pattern === RECORDED_AT) return `DateTime64(3, 'UTC')`
  return format === 'date' ? 'Date32' : 'String'
}

const RECORDED_AT = '^\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2}$'

function plain(row: Record<string, unknown>, columns: readonly Column[]): Record<string, unknown> {
  if (!columns.some(({ isNested }) => isNested)) return row
  const nested = columns.filter(({ name, isNested }) => isNested && row[name] !== undefined && row[name] !== null)
  return { ...row, ...Object.fromEntries(nested.map(({ name }) => [name, JSON.stringify(row[name])])) }
}

/**
 * Spreadsheets interpret a cell with such a beginning as a formula, also in full-width forms, and names contain any
 * text. A leading apostrophe makes them show it as text. Text with an apostrophe gets another one, so that removing
 * one is exact.
 */
const FORMULA = `'^[-=+@\\t\\r\\'\uff1d\uff0b\uff0d\uff20]'`
const NUMBER = `'^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)$'`

function shownFrom(source: string, columns: readonly Column[], format: StreamFormat): string {
  const values = columns.map(({ name, type }) => `CAST(t.\`${name}\`, '${type.replaceAll("'", "\\'")}')`)
  if (format !== 'TabSeparatedRawWithNames')
    return `SELECT ${columns.map(({ name }, n) => `${values[n]} AS \`${name}\``).join(', ')} FROM ${source} AS t`
  const cells = columns.map((column, n) => cell(column, values[n] as string))
  const header = columns.map(({ name }) => `"${name}"`).join(',')
  return `SELECT concat(${cells.join(", ',', ")}, '') AS \`${header}\` FROM ${source} AS t`
}

/** Returns a cell of CSV. The engine's own format quotes numbers in columns of text: programs read them as texts. */
function cell({ isText }: Column, value: string): string {
  if (!isText) return `formatRowNoNewline('CSV', ${value})`
  const text = `ifNull(${value}, '')`
  const quoted = `concat('"', if(match(${text}, ${FORMULA}), '\\'', ''), replaceAll(${text}, '"', '""'), '"')`
  return `multiIf(isNull(${value}), '', match(${text}, ${NUMBER}), ${text}, ${quoted})`
}
