import { createHash } from 'node:crypto'
import { abortable, encodeEvent, importRunTopic, instantOf, isFailure, type LogMessage } from '@gamenet/schemas'
import { encodeEvents } from '../people/encode-events.js'
import type { People } from '../people/people.js'
import type { Log } from '../ports/log.js'
import type { ImportProgress, ImportReport } from './contract.js'
import { type Fingerprint, type Format, fingerprint, hasChanged, withImportFile } from './import-file.js'
import { importCutOff } from './import-refused.js'
import { formatReader, readLocalTime, type TimeReader } from './import-time.js'
import { importableOf } from './importables.js'
import { LocalClock } from './local-clock.js'
import { type RowSource, readRows, surveyRows, type Tally } from './read-rows.js'
import { checkMapping, type Mapping } from './row-plan.js'
import type { Spelling } from './spelling.js'

/** Maximum number of rows that an interrupted import repeats. */
const PROGRESS_ROWS = 100_000
const PROGRESS_MS = 2000
/** The progress of an earlier run of the same import, from its newest `import-run` event. */
export type KnownImport = {
  readonly rowsRead: number
  readonly published: number
  readonly rejected: number
  readonly finished: boolean
  /** The import was undone. Importing the same file again is another import. */
  readonly isRetracted: boolean
}

/** The result of an import. */
export type ImportResult = ImportReport & { readonly topic: string; readonly file: string }

/** The file to import, and the options. */
export type ImportRequest = {
  readonly topic: string
  /** A path, or the bytes, which are copied to a temporary file first. */
  readonly input: string | AsyncIterable<Uint8Array>
  /** The name in messages, as the user gave it; `-` for standard input. */
  readonly fileName: string
  /** Event field → column of the file, if the names differ. */
  readonly columns?: Readonly<Record<string, string>>
  /** Event field → its constant value in every row, as text. */
  readonly set?: Readonly<Record<string, string>>
  /** How the file spells its values, where it does not say it by itself. */
  readonly spelling?: Spelling | undefined
  /** Number of faults that the result keeps with line and reason. */
  readonly faultsMax?: number | undefined
  /** Publishes nothing if there is any fault. */
  readonly strict?: boolean
  /** Default: detected from the content. */
  readonly format?: Format
  /** Directory for copies of streams. Default: the system's temporary directory. */
  readonly spoolDirectory?: string
}

/** Dependencies of an import. */
export type ImportNeeds = {
  readonly log: Log
  /** Seals events about people. Topics without subjects need none. */
  readonly people?: People
  /** Returns the newest state of an import, or undefined for a new one. */
  known(importId: string): Promise<KnownImport | undefined>
  onProgress?(progress: ImportProgress): void
  readonly signal?: AbortSignal
  /** Milliseconds since 1970. */
  now?(): number
}

/**
 * Imports one file into a topic. The file is read once for its hash and then row by row, with bounded memory. Events
 * carry the hash as `importId` and in their source: importing the same bytes with the same mapping again publishes
 * nothing, and an interrupted import continues after its last `import-run` event. Events between that and the
 * interruption are published again with the same ids.
 * Rejects with `import_refused` when it cannot start, with `import_cut_off` when it was interrupted, and with
 * the signal's reason.
 */
export async function runImport(request: ImportRequest, needs: ImportNeeds): Promise<ImportResult> {
  const found = importableOf(request.topic)
  const mapping = { columns: request.columns ?? {}, set: request.set ?? {} }
  const now = needs.now ?? Date.now
  const spelling = request.spelling ?? {}
  const target = { ...found, ...found.open?.(spelling) }
  const signal = needs.signal ?? new AbortController().signal
  signal.throwIfAborted()
  checkMapping(target, mapping, now())
  const { fileName, spoolDirectory } = request
  try {
    return await withImportFile(request.input, fileName, { signal, spoolDirectory }, async (file) => {
      const print = await fingerprint(file, request.format, {
        signal,
        onBytes: (bytesRead) => needs.onProgress?.({ ...NOTHING, phase: 'reading', bytesRead, bytesTotal: file.bytes })
      })
      const { format } = print
      const { faultsMax } = request
      const run = { target, mapping, file, format, faultsMax, nowMs: now(), signal, needs, now, ...readingOf(spelling) }
      let importId = importIdOf([target.topic.name, mapping, request.format, spelling], print)
      for (;;) {
        const before = await abortable(signal, needs.known(importId))
        if (before?.isRetracted !== true) return importFile({ ...run, importId }, before, request)
        importId = nextImportId(importId)
      }
    })
  } catch (error) {
    // Streams report "aborted"; the caller expects its own reason.
    signal.throwIfAborted()
    throw error
  }
}

/** Returns how times and cells are read. Throws `import_refused` for a zone or format that is none. */
function readingOf({ tz, timeFormat, delimiter }: Spelling): Pick<RowSource, 'clock' | 'readTime' | 'delimiter'> {
  const local: TimeReader | undefined = timeFormat === undefined ? undefined : formatReader(timeFormat)
  if (tz === undefined && local === undefined) return { delimiter }
  return { delimiter, clock: new LocalClock(tz ?? 'UTC'), readTime: local ?? readLocalTime }
}

async function importFile(
  run: Run,
  before: KnownImport | undefined,
  { strict = false }: { readonly strict?: boolean }
): Promise<ImportResult> {
  if (before?.finished === true) return resultOf(run, tallyFrom(before), { finished: true, alreadyDone: true })
  await surveyRows(run, tallyFrom(undefined), (bytesRead) => reportProgress(run, NOTHING, 'checking', bytesRead))
  if (strict) {
    const checked = await checkAll(run)
    if (checked.rejected > 0)
      return resultOf(run, { ...checked, published: 0 }, { finished: false, alreadyDone: false })
  }
  return resultOf(run, await publishAll(run, before), { finished: true, alreadyDone: false })
}

const NOTHING = { rowsRead: 0, published: 0, rejected: 0 }

type Run = RowSource & {
  readonly importId: string
  readonly needs: ImportNeeds
  now(): number
}

function tallyFrom(before: KnownImport | undefined): Tally {
  const { rowsRead, published, rejected } = before ?? NOTHING
  const missing = rowsRead - published - rejected
  const skipped = rowsRead
  return {
    rowsRead,
    published,
    rejected,
    missing,
    skipped,
    faults: [],
    ignoredColumns: [],
    absentColumns: [],
    notes: []
  }
}

function resultOf(
  run: Run,
  tally: Tally,
  outcome: { readonly finished: boolean; readonly alreadyDone: boolean }
): ImportResult {
  return { importId: run.importId, topic: run.target.topic.name, file: run.file.name, ...tally, ...outcome }
}

/**
 * Returns 32 hexadecimal digits of a hash over the unpacked bytes, the topic, the mapping, and the format and spelling
 * if they were given.
 */
function importIdOf(
  [topic, mapping, format, spelling]: readonly [string, Mapping, Format | undefined, Spelling],
  print: Fingerprint
): string {
  const sorted = (record: object) => Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1))
  const spelled = sorted(spelling).filter(([, value]) => value !== undefined)
  const how = [topic, sorted(mapping.columns), sorted(mapping.set), format ?? '', ...spelled]
  return createHash('sha256').update(JSON.stringify(how)).update(print.digest).digest('hex').slice(0, 32)
}

/** Returns the id of a repeated import after this one was undone. */
function nextImportId(importId: string): string {
  return createHash('sha256').update(`after ${importId}`).digest('hex').slice(0, 32)
}

async function checkAll(run: Run): Promise<Tally> {
  const tally = tallyFrom(undefined)
  await readRows(run, tally, {
    take: () => undefined,
    hold: () => undefined,
    afterBlock: () => Promise.resolve(),
    onProgress: (bytesRead) => reportProgress(run, tally, 'checking', bytesRead)
  })
  return tally
}

function reportProgress(run: Run, tally: typeof NOTHING, phase: 'checking' | 'publishing', bytesRead: number): void {
  const { rowsRead, published, rejected } = tally
  run.needs.onProgress?.({ phase, bytesRead, bytesTotal: run.file.bytes, rowsRead, published, rejected })
}

/** Sends one block of events to the log while the next one is read. */
async function publishAll(run: Run, before: KnownImport | undefined): Promise<Tally> {
  const { topic } = run.target
  const provenance = { source: `/import/${run.importId}`, importId: run.importId }
  const tally = tallyFrom(before)
  const report = progressReporter(run, tally)
  let events: unknown[] = []
  let inFlight: Promise<void> = Promise.resolve()
  let isHeld = false
  /** Appended before the first event: it shows readers of a part of the import that more may follow. */
  let beginning: LogMessage | undefined = report.message(false)
  try {
    await readRows(run, tally, {
      onProgress: (bytesRead) => reportProgress(run, tally, 'publishing', bytesRead),
      take: (event) => events.push(event),
      hold: () => {
        isHeld = true
      },
      afterBlock: async () => {
        const messages = await abortable(run.signal, encodeEvents(topic, events, provenance, run.needs.people))
        // Rows about an erased person count as rows without a value.
        tally.published -= events.length - messages.length
        tally.missing += events.length - messages.length
        await inFlight
        if (messages.length > 0 && beginning !== undefined) {
          await appendAll(run, topic.name, [], beginning)
          beginning = undefined
        }
        inFlight = appendAll(run, topic.name, messages, isHeld ? undefined : report.due())
        // The next block awaits it. Until then its rejection must not count as unhandled.
        inFlight.catch(() => undefined)
        events = []
      }
    })
    await inFlight
    run.signal.throwIfAborted()
    if (await hasChanged(run.file)) throw new Error(`${run.file.name} was changed while it was being imported`)
    await appendAll(run, topic.name, [], report.message(true))
  } catch (error) {
    await inFlight.catch(() => undefined)
    if (run.signal.aborted || isFailure(error, 'import_refused')) throw error
    throw importCutOff(run.file.name, tally.rowsRead, error)
  }
  return tally
}

async function appendAll(
  run: Run,
  topic: string,
  events: LogMessage[],
  progress: LogMessage | undefined
): Promise<void> {
  const append = (name: string, messages: LogMessage[]) => {
    run.signal.throwIfAborted()
    return abortable(run.signal, run.needs.log.append(name, messages))
  }
  if (events.length > 0) await append(topic, events)
  if (progress !== undefined) await append(importRunTopic.name, [progress])
}

/** Creates `import-run` events from a tally. Their instants rise even if the clock does not. */
function progressReporter(
  run: Run,
  tally: Tally
): { due(): LogMessage | undefined; message(finished: boolean): LogMessage } {
  const provenance = { source: `/import/${run.importId}`, importId: run.importId }
  let lastRows = tally.rowsRead
  let lastMs = run.nowMs
  const message = (finished: boolean) => {
    lastRows = tally.rowsRead
    lastMs = Math.max(run.now(), lastMs + 1)
    const event = {
      importId: run.importId,
      observedAt: instantOf(lastMs),
      topic: run.target.topic.name,
      file: run.file.name.slice(-1024),
      rowsRead: tally.rowsRead,
      published: tally.published,
      rejected: tally.rejected,
      finished
    }
    return encodeEvent(importRunTopic, event, provenance)
  }
  return {
    message,
    due: () => {
      const rows = tally.rowsRead - lastRows
      const isDue = rows >= PROGRESS_ROWS || (rows > 0 && run.now() - lastMs >= PROGRESS_MS)
      return isDue ? message(false) : undefined
    }
  }
}
