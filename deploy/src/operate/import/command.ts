import { createReadStream } from 'node:fs'
import { access, appendFile, constants, stat, writeFile } from 'node:fs/promises'
import { constants as system } from 'node:os'
import { basename, resolve } from 'node:path'
import { createGunzip } from 'node:zlib'
import type { ImportProgress, ImportReport } from '@gamenet/ingest/import'
import { bytesText, errorCode, importableTopics } from '@gamenet/schemas'
import { Argument, type Command, Option } from 'commander'
import { FailureError, UsageError } from '../../config.js'
import { withOperations } from '../../reach.js'
import { plain, plainLines } from '../../terminal/printable-text.js'
import { type Progress, showProgress } from '../../terminal/progress.js'
import { withStandardInput } from '../../terminal/standard-input.js'
import { addCommand, counted, print, type Terminal } from '../../terminal/terminal.js'
import type { Operations } from '../operation.js'
import { caughtUp } from '../status/caught-up.js'
import { importLog } from './import-log.js'
import { ImportSpelling, importFile, RATINGS, REJECTS_MAX } from './operation.js'
import { addImportUndo } from './undo-command.js'

const READABLE_WITHIN_SECONDS = 600
/** In the place of a topic: the events of all topics. */
const LOG = 'log'
const FAULTS_SHOWN = 100
/** What a shell passes for a tab. */
const TAB: ReadonlyMap<string | undefined, string> = new Map([
  ['\\t', '\t'],
  ['tab', '\t']
])

type Options = ImportSpelling & {
  json?: boolean
  columns: string[]
  set: string[]
  strict?: boolean
  wait: boolean
  rejects?: string
}
type FileReport = ImportReport & { file: string }

export function addImport(program: Command, terminal: Terminal): void {
  const collect = (value: string, before: string[]) => [...before, value]
  const command = addCommand(
    program,
    'import',
    'publish events from CSV, NDJSON or a JSON array, gzip too; `-` is standard input'
  )
    .addArgument(
      new Argument('<topic>', 'kind of event; log: the events of an exported log').choices([
        ...importableTopics.map((topic) => topic.name),
        LOG
      ])
    )
    .argument('<file...>', 'files, in reading order')
    .option('--columns <field=Header,...>', 'maps a field to a header of the file; may be repeated', collect, [])
    .option('--set <field=value>', 'a constant for a field; may be repeated', collect, [])
    .addOption(new Option('--ratings <spelling>', 'what ratings are, if their texts do not say it').choices(RATINGS))
    .option('--tz <zone>', 'the zone of times without one, such as Europe/Berlin; default: UTC')
    .option('--time-format <format>', 'how times are written, in the directives of strptime: %d/%m/%Y %H:%M')
    .option('--delimiter <character>', 'what divides the cells of CSV; default: what gives the needed columns')
    .option('--strict', 'publish nothing if any row is invalid')
    .option('--rejects <file>', `write the lines and reasons of rejected rows to a CSV file, the first ${REJECTS_MAX}`)
    .option('--no-wait', 'do not wait until the tables contain the events')
    .action(async (topic: string, files: string[], options: Options) => {
      if (topic === LOG) return await importLogs(terminal, files, options)
      const columns = pairs('--columns', options.columns.flatMap(splitColumns))
      const set = pairs('--set', options.set)
      const spelling = ImportSpelling.safeParse({
        ...options,
        delimiter: TAB.get(options.delimiter) ?? options.delimiter
      })
      if (!spelling.success)
        throw new UsageError(`--delimiter ${JSON.stringify(options.delimiter)} is not one character.`)
      await Promise.all(files.map(requireFile))
      if (options.rejects !== undefined) await requireWritable(options.rejects, files)
      const importAll = (piped: string) =>
        withOperations(terminal, async (operations) => {
          const reports: FileReport[] = []
          for (const file of files) {
            const request = {
              topic,
              file: file === '-' ? '-' : basename(file),
              columns,
              set,
              strict: options.strict === true,
              spelling: spelling.data,
              ...(options.rejects === undefined ? {} : { faultsMax: REJECTS_MAX })
            }
            const content = createReadStream(file === '-' ? piped : file)
            const display = showProgress(terminal, options.json !== true)
            const onProgress = (progress: ImportProgress) => display.update(progressOf(file, progress))
            const run = untilInterrupted(file, (signal) =>
              operations.run(importFile, { request, content }, { onProgress, signal })
            )
            reports.push({ file, ...(await run.finally(display.stop)) })
          }
          if (options.rejects !== undefined) await writeRejects(terminal, options.rejects, rejectsOf(reports))
          if (options.wait) await waitUntilReadable(operations, terminal)
          return reports
        })
      const reports = files.includes('-') ? await withStandardInput(terminal, importAll) : await importAll('')
      print(terminal, options.json, reports, reports.flatMap(linesOf))
      if (reports.some((report) => report.rejected > 0 || !report.finished)) terminal.exitCode = 1
    })
  addImportUndo(command, terminal)
}

/** Ends the import at SIGINT or SIGTERM, and says how to resume it. */
async function untilInterrupted<Result>(file: string, run: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const interrupted = new AbortController()
  const abort = (signal: NodeJS.Signals) =>
    interrupted.abort(
      new FailureError(
        `The import of ${file} was interrupted; the same command resumes it. \`gamenet import list\` shows what was ` +
          `published.`,
        128 + system.signals[signal]
      )
    )
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, abort)
  try {
    return await run(interrupted.signal)
  } catch (error) {
    interrupted.signal.throwIfAborted()
    throw error
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, abort)
  }
}

/** Writes the rejected rows, to standard error if the file cannot be written any more: no later command knows them. */
async function writeRejects(terminal: Terminal, file: string, rejects: string): Promise<void> {
  await writeFile(file, rejects).catch((error: unknown) => {
    terminal.exitCode = 1
    terminal.errors.write(
      `${JSON.stringify(file)} cannot be written (${errorCode(error)}). The rejected rows:\n${plainLines(rejects)}`
    )
  })
}

/** Formats rejected rows as CSV. */
function rejectsOf(reports: readonly FileReport[]): string {
  const cell = (text: string) => `"${text.replaceAll('"', '""')}"`
  const rows = reports.flatMap(({ file, faults }) =>
    faults.map(({ line, reason }) => `${cell(file)},${line},${cell(reason)}\n`)
  )
  return `file,line,reason\n${rows.join('')}`
}

/** Imports exported logs, one after the other. */
async function importLogs(terminal: Terminal, files: readonly string[], { json, wait }: Options): Promise<void> {
  const importAll = (piped: string) =>
    withOperations(terminal, async (operations) => {
      const reports = []
      for (const file of files) {
        await requireFile(file)
        const display = showProgress(terminal, json !== true)
        const onProgress = ({ events }: { events: number }) =>
          display.update({ label: `${plain(file)} publishing`, details: [`${events} events`] })
        const content = createReadStream(file === '-' ? piped : file)
        const unpacked = file.endsWith('.gz') ? content.pipe(createGunzip()) : content
        const report = await operations.run(importLog, { content: unpacked }, { onProgress }).finally(display.stop)
        reports.push({ file, ...report })
      }
      if (wait) await waitUntilReadable(operations, terminal)
      return reports
    })
  const reports = files.includes('-') ? await withStandardInput(terminal, importAll) : await importAll('')
  const lines = reports.flatMap(({ file, events, rejected, faults }) => [
    `${file}: ${counted(events, 'event')} published${rejected === 0 ? '' : `, ${counted(rejected, 'line')} rejected`}`,
    ...faults.map(({ line, reason }) => `  line ${line}: ${reason}`)
  ])
  print(terminal, json, reports, lines)
  if (reports.some(({ rejected }) => rejected > 0)) terminal.exitCode = 1
}

async function requireFile(file: string): Promise<void> {
  if (file === '-') return
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) throw new UsageError(`There is no file ${JSON.stringify(file)}.`)
  // A stream that cannot be opened would fail before anything listens to it.
  if (found.isFile()) return await access(file, constants.R_OK)
  throw new UsageError(
    `${JSON.stringify(file)} is not a regular file; name one, or - and give its content on standard input.`
  )
}

/** Before the import, because its report cannot be asked for again. */
async function requireWritable(rejects: string, files: readonly string[]): Promise<void> {
  const fault = files.some((file) => resolve(file) === resolve(rejects))
    ? 'is a file of the import'
    : await appendFile(rejects, '').then(
        () => undefined,
        (error: unknown) => `cannot be written (${errorCode(error)})`
      )
  if (fault !== undefined) throw new UsageError(`--rejects ${JSON.stringify(rejects)} ${fault}; name another file.`)
}

async function waitUntilReadable(operations: Operations, terminal: Terminal): Promise<void> {
  const wait = await operations.run(caughtUp, { seconds: READABLE_WITHIN_SECONDS })
  if (wait.caughtUp) return
  terminal.errors.write(`Published, but the tables have not caught up: ${plain(wait.behind.join('; '))}.\n`)
  terminal.exitCode = 1
}

/** Splits at commas that begin another `field=`; column names may contain commas. */
const splitColumns = (text: string): string[] => text.split(/,(?=[A-Za-z]+=)/)

function pairs(option: string, entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    entries.map((entry) => {
      const at = entry.indexOf('=')
      if (at < 1) throw new UsageError(`${option} takes field=value; got ${JSON.stringify(entry)}.`)
      return [entry.slice(0, at).trim(), entry.slice(at + 1)]
    })
  )
}

function progressOf(file: string, progress: ImportProgress): Progress {
  const { phase, bytesRead, bytesTotal, rowsRead, published } = progress
  return {
    label: `${plain(file)} ${phase}`,
    share: bytesRead / Math.max(1, bytesTotal, bytesRead),
    details: [
      `${bytesText(bytesRead)} of ${bytesText(bytesTotal)}`,
      `${rowsRead} rows`,
      ...(phase === 'publishing' ? [`${published} events`] : [])
    ]
  }
}

function linesOf(report: FileReport): string[] {
  const faults = report.faults.slice(0, FAULTS_SHOWN).map((fault) => `  line ${fault.line}: ${fault.reason}`)
  // Faults of an earlier import are not kept, only their number.
  const more = faults.length === 0 ? 0 : report.rejected - faults.length
  const rejected = report.rejected === 0 ? '' : `, ${counted(report.rejected, 'row')} rejected`
  return [
    report.alreadyDone
      ? `${report.file}: imported before (${report.importId})${rejected}; nothing was published`
      : countsLine(report),
    ...faults,
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...(report.finished ? [] : ['  nothing was published, because rows are invalid and --strict was given']),
    ...report.notes.map((note) => `  note: ${note}`),
    ...columnsLine('columns without a field', report.ignoredColumns),
    ...columnsLine('mapped columns that the file lacks', report.absentColumns)
  ]
}

const COLUMNS_SHOWN = 20

function columnsLine(what: string, names: readonly string[]): string[] {
  if (names.length === 0) return []
  const more = names.length > COLUMNS_SHOWN ? ` and ${counted(names.length - COLUMNS_SHOWN, 'other')}` : ''
  return [`  ${what}: ${names.slice(0, COLUMNS_SHOWN).join(', ')}${more}`]
}

function countsLine(report: FileReport): string {
  const parts = [
    `${counted(report.rowsRead, 'row')} read`,
    ...(report.finished ? [`${counted(report.published, 'event')} published`] : []),
    ...(report.missing > 0 ? [counted(report.missing, 'missing sample')] : []),
    ...(report.skipped > 0 ? [`${counted(report.skipped, 'row')} published before`] : []),
    ...(report.rejected > 0 ? [`${counted(report.rejected, 'row')} rejected`] : [])
  ]
  return `${report.file}: ${parts.join(', ')} (import ${report.importId})`
}
