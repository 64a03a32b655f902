import { isFailure } from '@gamenet/schemas'
import { type Csv, cellsOf, csvCutter, DELIMITERS } from './csv.js'
import { type Format, type ImportFile, textOf } from './import-file.js'
import { importRefused } from './import-refused.js'
import { inUtc, type TimeReader } from './import-time.js'
import type { Fields, Gathering, Importable, Opened, Outcome } from './importable.js'
import { arrayCutter, ndjsonCutter, objectsOf } from './json.js'
import { rowsOfObject } from './json-object.js'
import type { LocalClock } from './local-clock.js'
import { Repeats } from './repeats.js'
import { type Mapping, planRows, type Reading, type RowPlan } from './row-plan.js'
import { type Row, rowsOf } from './rows.js'

/** Gathered events are appended when they contain this many rows (about 1.5 MB), or are this many. */
const GATHERED_ROWS = 20_000
const GATHERED_EVENTS = 500
/**
 * Number of rows per block. Unpacking their events for Kafka blocks the main thread for a few milliseconds, and each
 * garbage collection copies those in memory.
 */
const BLOCK_ROWS = 2000
/** Number of faults that are kept with line and reason unless the request asks for more; all are counted. */
const FAULTS_KEPT = 100

const OPEN_END = 'the last line has no line end; if the file was cut off there, its last value is wrong'

/** A row that could not be imported. */
export type ImportFault = { readonly file: string; readonly line: number; readonly reason: string }

/** The rows of an import's file, and how they become events. */
export type RowSource = {
  readonly target: Importable & Partial<Opened>
  readonly mapping: Mapping
  readonly file: ImportFile
  readonly format: Format
  /** The start of the run: instants after it are in the future, for all rows. */
  readonly nowMs: number
  readonly signal: AbortSignal
  readonly faultsMax?: number | undefined
  readonly delimiter?: string | undefined
  readonly readTime?: TimeReader
  /** Present if times without a zone are local. */
  readonly clock?: LocalClock | undefined
  readonly isSurvey?: boolean
}

/** The counts so far. */
export type Tally = {
  rowsRead: number
  published: number
  rejected: number
  missing: number
  skipped: number
  faults: ImportFault[]
  ignoredColumns: readonly string[]
  absentColumns: readonly string[]
  /** Sentences about what the report cannot tell by numbers. */
  notes: readonly string[]
}

/** The consumer of rows. */
export type RowUse = {
  take(event: unknown): void
  /** Called at the first row that waits for others: another run would have to resume from here. */
  hold(): void
  /** Called after each {@link BLOCK_ROWS} rows, and after the last one. */
  afterBlock(): Promise<void>
  /** @param bytesRead bytes of the file so far */
  onProgress(bytesRead: number): void
}

/** Reads the file from the beginning, skips the rows that `tally` already counts, and counts the others into it. */
export async function readRows(run: RowSource, tally: Tally, use: RowUse): Promise<void> {
  const { file, signal } = run
  let bytesRead = 0
  const blocks = textOf(file, {
    signal,
    onBytes: (bytes) => {
      bytesRead = bytes
    }
  })
  const reader = run.format === 'csv' ? csvReader(run, tally) : jsonReader(run, tally)
  const gathering = run.target.gather?.()
  const repeats = new Repeats(run.target)
  let row = 0
  let hasOpenEnd = false
  const onOpenEnd = () => {
    hasOpenEnd = run.format === 'csv'
  }
  const pieces =
    run.format === 'object'
      ? rowsOfObject(blocks, (columns) => canPlan(run, columns))
      : rowsOf(blocks, reader.cutter, onOpenEnd)
  for await (const rows of pieces) {
    for (const { line, outcome } of reader.read(rows)) {
      row += 1
      if (row <= tally.skipped) continue
      tally.rowsRead += 1
      if (outcome.kind === 'event') {
        repeats.add(outcome.event)
        use.take(outcome.event)
        tally.published += 1
      } else if (outcome.kind === 'part') {
        use.hold()
        gathering?.add(outcome.part, line)
      } else if (outcome.kind === 'missing') tally.missing += 1
      else reject(run, tally, 1, { line, reason: outcome.reason })
      if (tally.rowsRead % BLOCK_ROWS === 0) await use.afterBlock()
    }
    signal.throwIfAborted()
    use.onProgress(bytesRead)
  }
  await use.afterBlock()
  reader.finish()
  if (gathering !== undefined) await useGathered(run, tally, gathering, use)
  tally.notes = [...repeats.notes(), ...(run.target.notes?.() ?? []), ...(hasOpenEnd ? [OPEN_END] : [])]
  use.onProgress(bytesRead)
}

/**
 * Reads the whole file once before `readRows`, if the meaning of a row depends on others: ratings that may be times,
 * and local times of a repeated hour.
 */
export async function surveyRows(run: RowSource, tally: Tally, onProgress: RowUse['onProgress']): Promise<void> {
  const { see } = run.target
  if (see === undefined && run.clock === undefined) return
  const outcome = (fields: Fields): Outcome => {
    see?.(fields)
    return { kind: 'missing' }
  }
  const nothing = { take: () => undefined, hold: () => undefined, afterBlock: () => Promise.resolve() }
  await readRows({ ...run, isSurvey: true, target: { ...run.target, outcome } }, tally, { ...nothing, onProgress })
}

/** Passes on the events of gathered rows, a block at a time. */
async function useGathered(run: RowSource, tally: Tally, gathering: Gathering, use: RowUse): Promise<void> {
  let rows = 0
  let events = 0
  for (const gathered of gathering.finish()) {
    if ('fault' in gathered) {
      reject(run, tally, gathered.rows, { line: gathered.line, reason: gathered.fault })
      continue
    }
    use.take(gathered.event)
    tally.published += gathered.rows
    rows += gathered.rows
    events += 1
    if (rows < GATHERED_ROWS && events < GATHERED_EVENTS) continue
    await use.afterBlock()
    run.signal.throwIfAborted()
    rows = 0
    events = 0
  }
  await use.afterBlock()
}

function reject(
  run: RowSource,
  tally: Tally,
  rows: number,
  fault: { readonly line: number; readonly reason: string }
): void {
  tally.rejected += rows
  if (tally.faults.length < (run.faultsMax ?? FAULTS_KEPT)) tally.faults.push({ file: run.file.name, ...fault })
}

type RowOutcome = { readonly line: number; readonly outcome: Outcome }

/** Turns the rows of one format into outcomes. The first rows determine the columns. */
type Reader = {
  readonly cutter: ReturnType<typeof csvCutter>
  read(rows: readonly Row[]): Iterable<RowOutcome>
  finish(): void
}

function csvReader(run: RowSource, tally: Tally): Reader {
  let plan: RowPlan | undefined
  const headerOf = (cells: readonly string[]) => cells.map((cell) => cell.trim())
  const csv: Csv = {
    delimiter: run.delimiter,
    choose: (header) => DELIMITERS.find((delimiter) => fits(run, header, delimiter)) ?? ','
  }
  return {
    cutter: csvCutter(csv),
    *read(rows) {
      for (const row of cellsOf(rows, csv.delimiter)) {
        if (plan === undefined) {
          if ('fault' in row)
            throw importRefused(`${run.file.name} has no readable header in line ${row.line}: ${row.fault}`)
          plan = planFor(run, tally, headerOf(row.cells), false)
        } else if ('fault' in row) yield { line: row.line, outcome: { kind: 'fault', reason: row.fault } }
        else yield { line: row.line, outcome: plan.fromCells(row.cells) }
      }
    },
    finish() {
      if (plan === undefined) throw importRefused(`${run.file.name} is empty; expected a header and rows`)
    }
  }
}

/** Returns whether a header has the needed columns if this character divides it. */
function fits(run: RowSource, text: string, delimiter: string): boolean {
  const [header] = cellsOf([{ line: 1, text }], delimiter)
  return header !== undefined && 'cells' in header && canPlan(run, header.cells)
}

/** Returns whether columns are enough for a row. */
function canPlan(run: RowSource, columns: readonly string[]): boolean {
  try {
    const header = columns.map((column) => column.trim())
    planRows(run.target, run.mapping, header, { isSample: false, nowMs: run.nowMs })
    return true
  } catch (error) {
    if (isFailure(error, 'import_refused')) return false
    throw error
  }
}

function jsonReader(run: RowSource, tally: Tally): Reader {
  let plan: RowPlan | undefined
  return {
    cutter: run.format === 'json' ? arrayCutter() : ndjsonCutter(),
    *read(rows) {
      const objects = objectsOf(rows)
      for (const row of objects) {
        if ('fault' in row) yield { line: row.line, outcome: { kind: 'fault', reason: row.fault } }
        else {
          plan ??= planFor(run, tally, keysOf(objects), true)
          yield { line: row.line, outcome: plan.fromObject(row.object) }
        }
      }
    },
    finish: () => undefined
  }
}

function planFor(run: RowSource, tally: Tally, columns: readonly string[], isSample: boolean): RowPlan {
  const { clock, nowMs, readTime } = run
  const seen = (key: string, wallMs: number) => {
    clock?.see(key, wallMs)
    return inUtc({ wallMs })
  }
  const resolve = run.isSurvey === true ? seen : clock?.reader()
  const reading: Reading = { isSample, nowMs, resolve, ...(readTime === undefined ? {} : { readTime }) }
  const plan = planRows(run.target, run.mapping, columns, reading)
  tally.ignoredColumns = plan.ignoredColumns
  tally.absentColumns = plan.absentColumns
  return plan
}

/** Returns the distinct keys of the objects of one block. */
function keysOf(rows: readonly ReturnType<typeof objectsOf>[number][]): readonly string[] {
  return [...new Set(rows.flatMap((row) => ('object' in row ? Object.keys(row.object) : [])))]
}
