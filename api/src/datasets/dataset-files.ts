import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import {
  errorCode,
  Mutex,
  type ReadPositions,
  Refusal,
  retryDropped,
  shownInstant,
  withServing
} from '@gamenet/schemas'
import type { Versions } from '../answers/resolved-url.js'
import type { StreamedTables } from '../read-tables.js'
import { DatasetFolder, ignoreMissing, isDescription } from './dataset-folder.js'
import { type Dataset, type DatasetMonths, datasets } from './datasets.js'
import type { StoredFile, StoredRevision } from './manifest.js'
import { CLOSED_AFTER_MS, dependencyOf, monthAt, monthSpan, monthsBetween } from './period.js'
import { datasetPosition } from './position.js'
import { factsStatement, fileStatement, monthsStatement, RowFacts, rowGroupRows, type Span } from './statements.js'

/** A file of an open month is made again when it is requested at a greater age. */
const OPEN_MS_MAX = 600_000
/** The newest revision, and the one before, which a client may still read. */
const REVISIONS_MAX = 2
/** Attempts to make a file whose rows change meanwhile. */
const TRIES_MAX = 3
const BUSY_RETRY_SECONDS = 10
const DIGEST_CHARACTERS = 16
/** Longer than a file takes. */
const DRAFT_MS_MAX = 3_600_000

export type DatasetFilesNeeds = {
  readonly tables: StreamedTables
  readonly positions: ReadPositions
  readonly versions: Pick<Versions, 'versionOf' | 'serving' | 'refreshDropped'>
  readonly directory: string
  /** Aborts when the service stops. */
  readonly signal: AbortSignal
  /** Rejects while the disk is low. */
  readonly requireSpace: () => Promise<void>
  now(): number
}

type NewRevision = Omit<StoredRevision, 'revision' | 'position'>

/** What the list says about a file. `newest` is undefined unless its bytes are there. */
export type ListedFile = {
  readonly period: string
  readonly isClosed: boolean
  readonly newest: StoredRevision | undefined
  readonly earlier: readonly StoredRevision[]
  readonly isMissing: boolean
}

/**
 * The files of datasets in a folder: `<dataset>/<period>.json` describes the revisions, `<period>.<digest>.parquet` has
 * the bytes. A file is made when it is requested, one at a time. It is listed when it is whole and on the disk.
 */
export class DatasetFiles {
  readonly #needs: DatasetFilesNeeds
  readonly #making = new Mutex()
  readonly #months = new Map<string, { readonly state: string; readonly months: readonly string[] }>()
  readonly #requested = new Map<string, Promise<StoredFile>>()
  readonly #folders: ReadonlyMap<Dataset, DatasetFolder>

  constructor(needs: DatasetFilesNeeds) {
    this.#needs = needs
    this.#folders = new Map(
      datasets.map((dataset) => [dataset, new DatasetFolder(join(needs.directory, dataset.name))])
    )
  }

  /**
   * Removes files that killed processes left and no description lists, when they are so old that no process makes them.
   */
  async removeUnlisted(): Promise<void> {
    for (const dataset of datasets) {
      const { names, files } = await this.#folder(dataset).content()
      const listed = new Set([...files.values()].flatMap(({ revisions }) => revisions).map(({ file }) => file))
      for (const name of names) {
        if (listed.has(name) || isDescription(name)) continue
        const path = this.#path(dataset, name)
        const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
        if (Date.now() - mtimeMs > DRAFT_MS_MAX) await rm(path, { force: true })
      }
    }
  }

  /** Returns the periods of a dataset, newest first: months with rows, and months with a published revision. */
  async periods(dataset: Dataset): Promise<readonly string[]> {
    const { files } = dataset
    if (files === 'newest') return ['newest']
    const nowMs = this.#needs.now()
    const open = monthSpan(monthAt(nowMs)) ?? { fromMs: 0, toMs: 0 }
    const months = [
      ...(await this.#monthsIn(dataset, files, open)),
      ...(await this.#monthsIn(dataset, files, { fromMs: 0, toMs: open.fromMs }))
    ]
    const first = months.at(-1)
    const withRows = files.of === 'rows' || first === undefined ? months : monthsBetween(first, nowMs)
    const published = await this.#folder(dataset).periods()
    return [...new Set([...withRows, ...published])].sort().reverse()
  }

  /** Reads them once per data version: the statement reads a column of the whole span. */
  #monthsIn(dataset: Dataset, files: DatasetMonths, span: Span): Promise<readonly string[]> {
    return retryDropped(this.#needs.versions, () => this.#readMonths(dataset, files, span))
  }

  async #readMonths(dataset: Dataset, files: DatasetMonths, span: Span): Promise<readonly string[]> {
    const { tables, versions } = this.#needs
    const { serving } = versions
    const key = `${dataset.name} ${span.fromMs === 0 ? 'closed' : 'open'}`
    const state = `${span.toMs} ${serving.counter} ${versions.versionOf({ projection: dataset.projection, ...span })}`
    const known = this.#months.get(key)
    if (known?.state === state) return known.months
    const { sql, parameters } = monthsStatement(dataset, files, span)
    const rows = await withServing(tables, serving).rows(sql, parameters, { signal: this.#needs.signal })
    const months = rows.map(({ month }) => String(month))
    this.#months.set(key, { state, months })
    return months
  }

  isClosed(period: string): boolean {
    const span = monthSpan(period)
    return span !== undefined && span.toMs + CLOSED_AFTER_MS <= this.#needs.now()
  }

  /**
   * Returns the files of a dataset, newest period first; `isMissing`: a closed month whose newest state is to be made.
   */
  async list(dataset: Dataset): Promise<readonly ListedFile[]> {
    const periods = await this.periods(dataset)
    const { names, files } = await this.#folder(dataset).content()
    return periods.map((period) => {
      const isClosed = this.isClosed(period)
      const file = files.get(period)
      const [last, ...earlier] = file?.revisions ?? []
      const newest = last !== undefined && names.has(last.file) ? last : undefined
      const isCurrent = file !== undefined && newest !== undefined && this.#isCurrent(dataset, period, file)
      return { period, isClosed, newest, earlier, isMissing: isClosed && !isCurrent }
    })
  }

  /** Returns the current state of a file; makes it if necessary. Concurrent requests share the work. */
  async #current(dataset: Dataset, period: string): Promise<StoredFile> {
    const file = await this.#folder(dataset).file(period)
    if (file !== undefined && this.#isCurrent(dataset, period, file)) return file
    return await this.#makeShared(dataset, period)
  }

  /**
   * Opens the bytes of a revision: the newest, or one by its digest. Makes the newest again if someone has deleted or
   * cut its file; undefined for revisions that are unknown or whose bytes are no longer kept.
   */
  async open(
    dataset: Dataset,
    period: string,
    digest?: string
  ): Promise<{ revision: StoredRevision; handle: FileHandle } | undefined> {
    const find = async () =>
      digest === undefined ? await this.#current(dataset, period) : await this.#folder(dataset).file(period)
    for (const known of [find, () => this.#makeShared(dataset, period)]) {
      const { revisions } = (await known()) ?? { revisions: [] }
      const revision = revisions.find(({ sha256 }) => sha256.startsWith(digest ?? ''))
      if (revision === undefined) return undefined
      const handle = await this.#openBytes(dataset, revision)
      if (handle !== undefined) return { revision, handle }
      if (revision !== revisions[0]) return undefined
    }
    return undefined
  }

  /**
   * Undefined if someone has deleted the file or changed its length: a connection cannot send more or less than it
   * announced.
   */
  async #openBytes(dataset: Dataset, { file, bytes }: StoredRevision): Promise<FileHandle | undefined> {
    const handle = await open(this.#path(dataset, file)).catch(ignoreMissing)
    if (handle === undefined || (await handle.stat()).size === bytes) return handle
    await handle.close()
    return undefined
  }

  #isCurrent(dataset: Dataset, period: string, { version, checkedMs }: StoredFile): boolean {
    const age = this.#needs.now() - checkedMs
    if (!this.isClosed(period)) return age < OPEN_MS_MAX
    return (
      version === this.#needs.versions.versionOf(dependencyOf(dataset, monthSpan(period))) &&
      checkedMs >= closedAt(period)
    )
  }

  #makeShared(dataset: Dataset, period: string): Promise<StoredFile> {
    const key = `${dataset.name}/${period}`
    const requested =
      this.#requested.get(key) ??
      this.#making.run(() => this.#make(dataset, period)).finally(() => this.#requested.delete(key))
    this.#requested.set(key, requested)
    return requested
  }

  async #make(dataset: Dataset, period: string): Promise<StoredFile> {
    const { versions, requireSpace } = this.#needs
    await requireSpace().catch((cause: unknown) => Promise.reject(new Refusal('disk_full', [], { cause })))
    const before = await this.#folder(dataset).file(period)
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const made = await retryDropped(versions, () => this.#makeOnce(dataset, period, before))
      if (made === undefined) continue
      await this.#removeOld(dataset, before, made)
      return made
    }
    throw new Refusal('engine_busy', [], { retryAfterSeconds: BUSY_RETRY_SECONDS })
  }

  /** Makes a file of one state of the tables; undefined if rows changed meanwhile. */
  async #makeOnce(dataset: Dataset, period: string, before: StoredFile | undefined): Promise<StoredFile | undefined> {
    const { versions, positions: read, now, tables } = this.#needs
    const { serving } = versions
    const span = monthSpan(period)
    const checkedMs = now()
    const version = versions.versionOf(dependencyOf(dataset, span))
    const positions = (await datasetPosition((names) => read(serving, names))).filter(
      (each) => each.dataset === dataset.name
    )
    const position = positions.map(({ epoch, partition, next }) => `${epoch}/${partition}/${next}`).join(' ')
    const describe = async (made: NewRevision | undefined) => {
      const added = made && { ...made, position }
      const revisions = revisionsWith(before?.revisions ?? [], added, this.isClosed(period))
      const file = { version, checkedMs, revisions }
      await this.#folder(dataset).describe(period, file)
      return file
    }
    return await this.#write(withServing(tables, serving), { dataset, period, span }, before?.revisions[0], describe)
  }

  /** Writes a file unless the newest revision has the same rows; undefined if rows changed meanwhile. */
  async #write(
    tables: StreamedTables,
    { dataset, period, span }: { readonly dataset: Dataset; readonly period: string; readonly span: Span | undefined },
    newest: StoredRevision | undefined,
    describe: (made: NewRevision | undefined) => Promise<StoredFile>
  ): Promise<StoredFile | undefined> {
    const facts = await this.#facts(tables, dataset, span)
    if (newest !== undefined && newest.rows === facts.rows && newest.rowsHash === facts.rowsHash) {
      const handle = await this.#openBytes(dataset, newest)
      await handle?.close()
      if (handle !== undefined) return await describe(undefined)
    }
    const draft = this.#path(dataset, `.${period}.${randomUUID()}`)
    await mkdir(dirname(draft), { recursive: true })
    try {
      const { sha256, bytes } = await this.#stream(tables, { dataset, span, rowGroupRows: rowGroupRows(facts) }, draft)
      if ((await this.#facts(tables, dataset, span)).rowsHash !== facts.rowsHash) return undefined
      const file = `${period}.${sha256.slice(0, DIGEST_CHARACTERS)}.parquet`
      const { rows, rowsHash, firstMs, lastMs } = facts
      const shown = (ms: number | null) => (ms === null ? null : shownInstant(ms))
      const [first, last, madeAt] = [shown(firstMs), shown(lastMs), shownInstant(this.#needs.now())]
      await rename(draft, this.#path(dataset, file))
      return await describe({ file, rows, bytes, first, last, sha256, rowsHash, madeAt })
    } finally {
      await rm(draft, { force: true })
    }
  }

  async #facts(tables: StreamedTables, dataset: Dataset, span: Span | undefined): Promise<RowFacts> {
    const { sql, parameters } = factsStatement(dataset, span)
    const [row] = await tables.rows(sql, parameters, { signal: this.#needs.signal })
    return RowFacts.parse(row)
  }

  async #stream(
    tables: StreamedTables,
    file: { readonly dataset: Dataset; readonly span: Span | undefined; readonly rowGroupRows: number },
    path: string
  ): Promise<{ sha256: string; bytes: number }> {
    const { sql, parameters } = fileStatement(file.dataset, file.span)
    const { signal } = this.#needs
    const options = { format: 'Parquet', signal, rowGroupRows: file.rowGroupRows } as const
    const body = await tables.stream(sql, parameters, options)
    const hash = createHash('sha256')
    let bytes = 0
    const counted = new Transform({
      transform: (chunk: Uint8Array, _encoding, done) => {
        hash.update(chunk)
        bytes += chunk.length
        done(null, chunk)
      }
    })
    await pipeline(body, counted, createWriteStream(path, { flush: true, mode: 0o600 }))
    return { sha256: hash.digest('hex'), bytes }
  }

  /** Keeps the bytes of the listed revisions, and those of the one that was the newest until now. */
  async #removeOld(dataset: Dataset, before: StoredFile | undefined, { revisions }: StoredFile): Promise<void> {
    const [newest, ...others] = before?.revisions ?? []
    const kept = new Set([...revisions, ...(newest === undefined ? [] : [newest])].map(({ file }) => file))
    for (const { file } of others) if (!kept.has(file)) await rm(this.#path(dataset, file), { force: true })
  }

  #folder(dataset: Dataset): DatasetFolder {
    const folder = this.#folders.get(dataset)
    if (folder === undefined) throw new Error(`The dataset ${dataset.name} is not listed.`)
    return folder
  }

  #path(dataset: Dataset, name: string): string {
    return join(this.#needs.directory, dataset.name, name)
  }
}

/**
 * Returns the revisions with the made state, or with the newest one as it is. An open month has one, 0; a state that
 * was published as closed stays listed.
 */
function revisionsWith(
  before: readonly StoredRevision[],
  made: Omit<StoredRevision, 'revision'> | undefined,
  isClosed: boolean
): StoredRevision[] {
  const newest = made ?? before[0]
  if (newest === undefined) return []
  const published = before.filter(({ revision }) => revision > 0)
  const [last] = published
  const isSame = last?.sha256 === newest.sha256
  const revision = isClosed ? (last?.revision ?? 0) + (isSame ? 0 : 1) : 0
  return [{ ...newest, revision }, ...published.slice(isClosed && isSame ? 1 : 0)].slice(0, REVISIONS_MAX)
}

const closedAt = (period: string): number => (monthSpan(period)?.toMs ?? 0) + CLOSED_AFTER_MS

/** Errors of a folder, a file of another kind or user, and a disk. */
const UNUSABLE = /^(EACCES|EPERM|EISDIR|ENOTDIR|EIO|EROFS)$/

/** Refuses a request whose files cannot be used; the log names them. */
export function refuseUnusable(error: unknown): never {
  const code = errorCode(error)
  if (/^(ENOSPC|EDQUOT)$/.test(code)) throw new Refusal('disk_full', [], { cause: error })
  throw UNUSABLE.test(code) ? new Refusal('data_damaged', [], { cause: error }) : error
}
