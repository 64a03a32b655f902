import type { Failure } from '@gamenet/schemas'
import { importRefused } from './import-refused.js'
import { type ReadTime, readEpoch, readTime, type TimeReader } from './import-time.js'
import type { CellKind, Fields, Importable, Outcome } from './importable.js'
import { judged, shown } from './row-judge.js'

const DAY_MS = 86_400_000

/** The columns of fields, and the fields with a constant value. */
export type Mapping = {
  readonly columns: Readonly<Record<string, string>>
  readonly set: Readonly<Record<string, string>>
}

/** How rows of one file are read, derived once from its columns. */
export type RowPlan = {
  /** Columns of the file without a field. */
  readonly ignoredColumns: readonly string[]
  /** Mapped columns that the first rows lack, if later rows may still have them. */
  readonly absentColumns: readonly string[]
  fromCells(cells: readonly string[]): Outcome
  fromObject(object: Readonly<Record<string, unknown>>): Outcome
}

type Binding = { readonly field: string; readonly kind: CellKind; readonly column: string; readonly index: number }

/** How the cells of a pass over a file are read. */
export type Reading = {
  /** The columns are those of the first rows of a JSON file, so an optional one may appear later. */
  readonly isSample: boolean
  readonly nowMs: number
  readonly readTime?: TimeReader
  /**
   * Returns the instant of a time without a zone, in the series that `key` names. Without it, `readTime` returns none.
   */
  readonly resolve?: ((key: string, wallMs: number) => ReadTime) | undefined
}

/** Validates fields and constants before a file is opened. Throws `import_refused` with the first fault. */
export function checkMapping(target: Importable, mapping: Mapping, nowMs: number): void {
  const known = Object.keys(target.fields)
  for (const field of [...Object.keys(mapping.columns), ...Object.keys(mapping.set)]) {
    if (known.includes(field)) continue
    const name = JSON.stringify(field)
    throw importRefused(`${target.topic.name} has no field ${name}; its fields are ${known.join(', ')}`)
  }
  for (const field of Object.keys(mapping.set)) {
    if (Object.hasOwn(mapping.columns, field))
      throw importRefused(`${field} is given both a column and a constant; give it one of them`)
  }
  constantsOf(target, mapping, nowMs)
}

/**
 * Binds fields to the columns of a file: the mapped column, else the one with the field's name; a constant wins over a
 * column. Columns match in any case, if none matches exactly. Throws `import_refused` if a required field has
 * neither.
 */
export function planRows(target: Importable, mapping: Mapping, columns: readonly string[], options: Reading): RowPlan {
  const constants = constantsOf(target, mapping, options.nowMs)
  const bindings: Binding[] = []
  const absentColumns: string[] = []
  for (const [field, kind] of Object.entries(target.fields)) {
    if (Object.hasOwn(constants, field)) continue
    const mapped = Object.hasOwn(mapping.columns, field) ? mapping.columns[field] : undefined
    const wanted = mapped ?? field
    const column = columns.includes(wanted) ? wanted : (columns.find((name) => isAlike(name, wanted)) ?? wanted)
    const index = columns.indexOf(column)
    if (index !== -1 && columns.indexOf(column, index + 1) !== -1)
      throw importRefused(`The column ${JSON.stringify(column)} occurs twice in the file; rename one of them`)
    if (index === -1 && mapped !== undefined) {
      if (!options.isSample) throw absent(target, field, column, columns, options)
      absentColumns.push(column)
    }
    if (index === -1 && isNeeded(target, field, options)) throw absent(target, field, column, columns, options)
    if (index !== -1 || options.isSample) bindings.push({ field, kind, column, index })
  }
  const used = new Set(bindings.map(({ column }) => column))
  const ignoredColumns = columns.filter((column) => !used.has(column))
  const given = new Set([...Object.keys(constants), ...bindings.filter((b) => b.index !== -1).map((b) => b.field)])
  // JSON may omit missing values, so a file of missing samples only has no such key. If there are other keys instead,
  // they are far likelier to be the measured values under other names.
  const isSuspect = !options.isSample || ignoredColumns.length > 0
  if (isSuspect && target.measured.length > 0 && !target.measured.some((field) => given.has(field)))
    throw importRefused(
      `No column has any of ${target.measured.join(', ')}; ${found(columns, options.isSample)}; map one of them`
    )
  const latest = latestOf(target, options.nowMs)
  const judge = judgement(target)
  const times = options.readTime ?? readTime
  const complete = (event: Record<string, unknown>) => {
    for (const [field, value] of Object.entries(event)) {
      if (!(value instanceof LocalTime)) continue
      const key = SERIES.map((name) => event[name]).join(' ')
      const instant = instantUpTo(latest, options.resolve?.(key, value.wallMs) ?? { fault: 'it has no zone' })
      if (instant instanceof CellFault) return faulty(`${field} is ${shown(value.text)}: ${instant.reason}`)
      event[field] = instant
    }
    return target.outcome(event, judge)
  }
  return {
    ignoredColumns,
    absentColumns,
    fromCells: (cells) => {
      if (cells.length !== columns.length)
        return faulty(`the row has ${cells.length} cells, the header has ${columns.length}`)
      const event: Record<string, unknown> = { ...constants }
      for (const { field, kind, index } of bindings) {
        const value = readCell(kind, cells[index] ?? '', latest, times)
        if (value instanceof CellFault) return faulty(`${field} is ${shown(cells[index])}: ${value.reason}`)
        if (value !== undefined) event[field] = value
      }
      return complete(event)
    },
    fromObject: (object) => {
      const event: Record<string, unknown> = { ...constants }
      for (const { field, kind, column } of bindings) {
        const given = Object.hasOwn(object, column) ? object[column] : undefined
        // The name of a member is text, whatever it means.
        const isName = column === 'key' && typeof given === 'string'
        const value = isName ? readCell(kind, given, latest, times) : readValue(kind, given, latest, times)
        if (value instanceof CellFault) return faulty(`${field} is ${shown(object[column])}: ${value.reason}`)
        if (value !== undefined) event[field] = value
      }
      return complete(event)
    }
  }
}

/**
 * Returns whether a file without this column can be refused. JSON may omit a measured key where its value is missing.
 */
function isNeeded(target: Importable, field: string, { isSample }: { readonly isSample: boolean }): boolean {
  return target.required.includes(field) && !(isSample && target.measured.includes(field))
}

/** Returns the default: a missing sample if nothing was measured, else the schema's result. */
function judgement(target: Importable): (event: Fields) => Outcome {
  const { measured, topic } = target
  const unmeasured = target.required.filter((field) => !measured.includes(field))
  return (event) => {
    if (measured.length > 0 && measured.every((field) => event[field] === undefined)) {
      const lacking = unmeasured.find((field) => event[field] === undefined)
      return lacking === undefined ? { kind: 'missing' } : faulty(`${lacking} is missing`)
    }
    const row = judged(topic.event, event)
    return 'fault' in row ? faulty(row.fault) : { kind: 'event', event: row.value }
  }
}

/** An unreadable cell, distinct from every value. */
class CellFault {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

/** A time without a zone, until the other fields of its row are known. */
class LocalTime {
  readonly text: string
  readonly wallMs: number
  constructor(text: string, wallMs: number) {
    this.text = text
    this.wallMs = wallMs
  }
}

/** The fields that tell the series of a file apart. */
const SERIES = ['titleId', 'leaderboardId', 'playerName', 'username', 'hostName']

/** What programs write for a missing value. */
const MISSING = /^(?:nan|n\/a|na|null|-)?$/i
/** Spreadsheets and exports of tables write it before text that could be a formula. */
const GUARDED = /^'(?=['=+\-@\t\r\uff1d\uff0b\uff0d\uff20])/

/** Parses a CSV cell or a constant; undefined if it is a missing value. */
function readCell(kind: CellKind, text: string, latest: Latest, times: TimeReader): unknown {
  const trimmed = text.trim()
  if (kind === 'name') return trimmed === '' ? undefined : text.replace(GUARDED, '')
  if (MISSING.test(trimmed)) return undefined
  switch (kind) {
    case 'instant':
      return instantOfText(trimmed, latest, times)
    case 'integer':
      if (!/^-?\d{1,16}(?:\.0+)?$/.test(trimmed)) return new CellFault('expected a whole number in digits only')
      return Number(trimmed)
    case 'list':
      return trimmed.split(';').map((item) => item.trim())
    case 'text':
      return text.replace(GUARDED, '')
  }
}

/** Parses a JSON field; undefined if it is a missing value. Numbers in text are left to the schema. */
function readValue(kind: CellKind, value: unknown, latest: Latest, times: TimeReader): unknown {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && (kind === 'name' ? value.trim() === '' : MISSING.test(value.trim())))
    return undefined
  if (kind !== 'instant') return value
  if (typeof value === 'string') return instantOfText(value.trim(), latest, times)
  if (typeof value === 'number') return instantUpTo(latest, readEpoch(value))
  return new CellFault('expected a time as text or number')
}

function instantOfText(text: string, latest: Latest, times: TimeReader): string | CellFault | LocalTime {
  const time = times(text)
  return 'wallMs' in time ? new LocalTime(text, time.wallMs) : instantUpTo(latest, time)
}

/** The latest accepted instant of a row, and the reason for the limit. */
type Latest = { readonly ms: number; readonly reason: string }

function latestOf({ aheadMsMax }: Importable, nowMs: number): Latest {
  const span = aheadMsMax >= DAY_MS ? 'a day' : 'a minute'
  return { ms: nowMs + aheadMsMax, reason: `the time is more than ${span} in the future` }
}

function instantUpTo(latest: Latest, time: ReadTime): string | CellFault {
  if ('fault' in time) return new CellFault(time.fault)
  return time.ms > latest.ms ? new CellFault(latest.reason) : time.instant
}

function constantsOf(target: Importable, mapping: Mapping, nowMs: number): Record<string, unknown> {
  const constants: Record<string, unknown> = {}
  for (const [field, text] of Object.entries(mapping.set)) {
    const kind = target.fields[field]
    if (kind === undefined) continue
    const value = readCell(kind, text, latestOf(target, nowMs), readTime)
    if (value === undefined) throw importRefused(`The constant for ${field} is empty; leave it out or give a value`)
    const issue = value instanceof CellFault ? value.reason : schemaFault(target, field, value)
    if (issue !== undefined) throw importRefused(`The constant for ${field} is ${shown(text)}: ${issue}`)
    constants[field] = value
  }
  return constants
}

/** Returns the schema's fault for one field, regardless of the others. */
function schemaFault(target: Importable, field: string, value: unknown): string | undefined {
  const parsed = target.topic.event.safeParse({ [field]: value })
  return parsed.success ? undefined : parsed.error.issues.find(({ path }) => path[0] === field)?.message
}

const isAlike = (name: string, wanted: string): boolean => name.trim().toLowerCase() === wanted.trim().toLowerCase()

function absent(
  target: Importable,
  field: string,
  column: string,
  columns: readonly string[],
  { isSample }: { readonly isSample: boolean }
): Failure {
  const hint = column === field ? `map one with ${field}=<column>, or set a constant` : 'correct the mapping'
  return importRefused(
    `${target.topic.name} takes ${field} from the column ${JSON.stringify(column)}, which is not there; ` +
      `${found(columns, isSample)}; ${hint}`
  )
}

/** Lists columns for a message. Names are cut: a file that is not a table may have one of a megabyte. */
function found(columns: readonly string[], isSample: boolean): string {
  const names = columns.slice(0, 30).map((column) => JSON.stringify(column.slice(0, 60)))
  const more = columns.length > names.length ? ` and ${columns.length - names.length} more` : ''
  return `${isSample ? 'the first rows have' : 'the header has'} ${names.join(', ') || 'no columns'}${more}`
}

const faulty = (reason: string): Outcome => ({ kind: 'fault', reason })
