import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { errorCode, Mutex, type ReadPositions, Refusal, shownInstant, withServing } from '@gamenet/schemas'
import type { Versions } from '../http/request/resolved-url.js'
import type { StreamedTables } from '../read-tables.js'
import { type Dataset, datasets } from './datasets.js'
import { StoredFile, type StoredRevision } from './manifest.js'
import { CLOSED_AFTER_MS, dependencyOf, monthSpan, monthsBetween } from './period.js'
import { datasetPosition } from './position.js'
import { factsStatement, fileStatement, firstStatement, RowFacts, type Span } from './statements.js'

/** A file of an open month is made again when it is requested at a greater age. */
const OPEN_MS_MAX = 600_000
/** Revisions whose bytes are kept: a client may still read the one before the newest. */
const REVISIONS_KEPT = 2
const REVISIONS_LISTED_MAX = 20
/** Attempts to make a file whose rows change meanwhile. */
const TRIES_MAX = 3
const BUSY_RETRY_SECONDS = 10
const DIGEST_CHARACTERS = 16
/** Longer than a file takes. */
const DRAFT_MS_MAX = 3_600_000

export type DatasetFilesNeeds = {
  readonly tables: StreamedTables
  readonly positions: ReadPositions
  readonly versions: Pick<Versions, 'versionOf' | 'serving'>
  readonly directory: string
  /** Aborts when the service stops. */
  readonly signal: AbortSignal
  /** Rejects while the disk is low. */
  readonly requireSpace: () => Promise<void>
  now(): number
}

/**
 * The files of datasets in a folder: `<dataset>/<period>.json` describes the revisions, `<period>.<digest>.parquet` has the bytes.
 * A file is made when it is requested, one at a time. It is listed when it is whole and on the disk.
 */
export class DatasetFiles {
  readonly #needs: DatasetFilesNeeds
  readonly #making = new Mutex()
  readonly #requested = new Map<string, Promise<StoredFile>>()

  constructor(needs: DatasetFilesNeeds) {
    this.#needs = needs
  }

  /** Removes drafts that killed processes left, when they are so old that no process writes them. */
  async removeDrafts(): Promise<void> {
    for (const dataset of datasets) {
      for (const name of await readdir(this.#path(dataset, '')).catch(() => [])) {
        if (!name.startsWith('.') && !name.includes('.json.')) continue
        const path = this.#path(dataset, name)
        const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
        if (Date.now() - mtimeMs > DRAFT_MS_MAX) await rm(path, { force: true })
      }
    }
  }

  /** Returns the periods of a dataset, newest first. */
  async periods(dataset: Dataset): Promise<string[]> {
    const first = firstStatement(dataset)
    if (first === undefined) return ['newest']
    const { tables, versions } = this.#needs
    const [row] = await withServing(tables, versions.serving).rows(first.sql, first.parameters)
    const firstMs = Number(row?.firstMs ?? 0)
    return firstMs === 0 ? [] : monthsBetween(firstMs, this.#needs.now())
  }

  isClosed(period: string): boolean {
    const span = monthSpan(period)
    return span !== undefined && span.toMs + CLOSED_AFTER_MS <= this.#needs.now()
  }

  /** Returns what is stored of a file, and whether it is the state that a request would get. */
  async stored(
    dataset: Dataset,
    period: string
  ): Promise<{ readonly file: StoredFile | undefined; readonly isCurrent: boolean }> {
    const path = this.#path(dataset, `${period}.json`)
    const text = await readFile(path, 'utf8').catch(ignoreMissing)
    const file = text === undefined ? undefined : parsed(text)
    return { file, isCurrent: file !== undefined && this.#isCurrent(dataset, period, file) }
  }

  /** Returns the current state of a file; makes it if necessary. Concurrent requests share the work. */
  async current(dataset: Dataset, period: string): Promise<StoredFile> {
    const { file, isCurrent } = await this.stored(dataset, period)
    if (file !== undefined && isCurrent) return file
    return await this.#makeShared(dataset, period)
  }

  /** Opens the bytes of a revision: the newest, or one by its digest. Makes a file that someone has deleted again. */
  async open(
    dataset: Dataset,
    period: string,
    digest?: string
  ): Promise<{ revision: StoredRevision; handle: FileHandle } | undefined> {
    for (const make of [() => this.current(dataset, period), () => this.#makeShared(dataset, period)]) {
      const { revisions } =
        digest === undefined ? await make() : ((await this.stored(dataset, period)).file ?? { revisions: [] })
      const revision = digest === undefined ? revisions[0] : revisions.find(({ sha256 }) => sha256.startsWith(digest))
      if (revision === undefined) return undefined
      const handle = await open(this.#path(dataset, revision.file)).catch(ignoreMissing)
      if (handle !== undefined) return { revision, handle }
      if (digest !== undefined) return undefined
    }
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
      this.#making
        .run(() => this.#make(dataset, period))
        .catch(orDiskFull)
        .finally(() => this.#requested.delete(key))
    this.#requested.set(key, requested)
    return requested
  }

  async #make(dataset: Dataset, period: string): Promise<StoredFile> {
    const { versions, positions: read, requireSpace, now, tables } = this.#needs
    await requireSpace()
    const span = monthSpan(period)
    const isClosed = this.isClosed(period)
    const { file: before } = await this.stored(dataset, period)
    const checkedMs = now()
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      // One snapshot of the tables for positions, facts and bytes.
      const { serving } = versions
      const version = versions.versionOf(dependencyOf(dataset, span))
      const positions = (await datasetPosition((names) => read(serving, names))).filter(
        (each) => each.dataset === dataset.name
      )
      const position = positions.map(({ epoch, partition, next }) => `${epoch}/${partition}/${next}`).join(' ')
      const made = await this.#write(withServing(tables, serving), { dataset, period, span }, before?.revisions[0])
      if (made === undefined) continue
      const revisions = revisionsWith(
        before?.revisions ?? [],
        made === 'same' ? undefined : { ...made, position },
        isClosed
      )
      const file = { version, checkedMs, revisions }
      await replaceFile(this.#path(dataset, `${period}.json`), JSON.stringify(file))
      await this.#removeOld(dataset, before, file)
      return file
    }
    throw new Refusal('engine_busy', [], { retryAfterSeconds: BUSY_RETRY_SECONDS })
  }

  /** Writes a file unless the newest revision has the same rows; undefined if rows changed meanwhile. */
  async #write(
    tables: StreamedTables,
    { dataset, period, span }: { readonly dataset: Dataset; readonly period: string; readonly span: Span | undefined },
    newest: StoredRevision | undefined
  ) {
    const facts = await this.#facts(tables, dataset, span)
    if (newest !== undefined && newest.rows === facts.rows && newest.rowsHash === facts.rowsHash) {
      const handle = await open(this.#path(dataset, newest.file)).catch(ignoreMissing)
      await handle?.close()
      if (handle !== undefined) return 'same' as const
    }
    const draft = this.#path(dataset, `.${period}.${randomUUID()}`)
    await mkdir(dirname(draft), { recursive: true })
    try {
      const { sha256, bytes } = await this.#stream(tables, { dataset, span }, draft)
      if ((await this.#facts(tables, dataset, span)).rowsHash !== facts.rowsHash) return undefined
      const file = `${period}.${sha256.slice(0, DIGEST_CHARACTERS)}.parquet`
      await rename(draft, this.#path(dataset, file))
      await flushFolder(dirname(draft))
      const { rows, rowsHash, firstMs, lastMs } = facts
      const shown = (ms: number | null) => (ms === null ? null : shownInstant(ms))
      return {
        file,
        rows,
        bytes,
        first: shown(firstMs),
        last: shown(lastMs),
        sha256,
        rowsHash,
        madeAt: shownInstant(this.#needs.now())
      }
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
    { dataset, span }: { readonly dataset: Dataset; readonly span: Span | undefined },
    path: string
  ): Promise<{ sha256: string; bytes: number }> {
    const { sql, parameters } = fileStatement(dataset, span)
    const { signal } = this.#needs
    const body = await tables.stream(sql, parameters, { format: 'Parquet', signal })
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

  /** Keeps the bytes of the newest revisions, and those of the one that was the newest until now. */
  async #removeOld(dataset: Dataset, before: StoredFile | undefined, { revisions }: StoredFile): Promise<void> {
    const kept = new Set(
      [...revisions.slice(0, REVISIONS_KEPT), ...(before?.revisions.slice(0, 1) ?? [])].map(({ file }) => file)
    )
    for (const { file } of [...(before?.revisions ?? []), ...revisions]) {
      if (!kept.has(file)) await rm(this.#path(dataset, file), { force: true })
    }
  }

  #path(dataset: Dataset, name: string): string {
    return join(this.#needs.directory, dataset.name, name)
  }
}

/**
 * Returns the revisions with the made state, or with the newest one as it is. An open month has one, 0; a state that was
 * published as closed stays listed.
 */
function revisionsWith(
  before: readonly StoredRevision[],
  made: Omit<StoredRevision, 'revision'> | undefined,
  isClosed: boolean
): StoredRevision[] {
  const newest = made ?? before[0]
  if (newest === undefined) return []
  const published = before.filter(({ revision }) => revision > 0)
  const known = published.find(({ sha256 }) => sha256 === newest.sha256)
  const revision = isClosed ? (known?.revision ?? (published[0]?.revision ?? 0) + 1) : 0
  return [{ ...newest, revision }, ...published.filter((each) => each !== known)].slice(0, REVISIONS_LISTED_MAX)
}

function closedAt(period: string): number {
  return (monthSpan(period)?.toMs ?? 0) + CLOSED_AFTER_MS
}

/** A description that cannot be read is made again. */
function parsed(text: string): StoredFile | undefined {
  try {
    return StoredFile.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomUUID()}`
  try {
    await writeFile(draft, text, { flush: true, mode: 0o600 })
    await rename(draft, path)
    await flushFolder(dirname(path))
  } finally {
    await rm(draft, { force: true })
  }
}

async function flushFolder(path: string): Promise<void> {
  const folder = await open(path)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function ignoreMissing(error: unknown): undefined {
  if (errorCode(error) !== 'ENOENT') throw error
}

function orDiskFull(error: unknown): never {
  if (/^(ENOSPC|EDQUOT)$/.test(errorCode(error))) throw new Refusal('disk_full', [], { cause: error })
  throw error
}
