import { readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { migratePostgres, newestMigration, openPglite, openPostgres } from '@gamenet/engines'
import { flushPath, flushTree } from '@gamenet/engines/files'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { readMigrations } from '@gamenet/projector'
import { FailureError, UsageError } from '../../config.js'
import {
  claimDataDirectory,
  DATA_FORMAT,
  isInside,
  mkdirWritable,
  OWNER_FILE,
  RESTORING_FILE
} from '../../data-directory/data-directory.js'
import { unwritableDisk } from '../../data-directory/unwritable-disk.js'
import { type LedgerFile, mergeLedger, readLedgerFile } from '../../stores/ledger-file.js'
import { VERSIONS } from '../../version.js'
import { refuseLowDisk } from '../backup/backup.js'
import { copyFiles } from '../backup/copy.js'
import { DATA_FOLDER, damaged, ENTRIES_FILE, type Manifest, readManifest } from '../backup/manifest.js'
import { copyWrites } from './copy-writes.js'

export type RestoreRequest = {
  readonly backup: string
  readonly dataDirectory: string
  /** A data directory, or a copy of its ledger, with the users erased since the backup. */
  readonly ledger: string | undefined
  /** An empty PostgreSQL, which gets the write side too. */
  readonly postgresUrl?: string | undefined
  readonly onProgress: (bytes: number, bytesTotal: number) => void
  readonly signal: AbortSignal
}

export type RestoreReport = {
  readonly dataDirectory: string
  readonly createdAt: string
  readonly files: number
  readonly bytes: number
  /** Erasures of the ledger that the backup lacks; null without a ledger. */
  readonly toErase: number | null
  /** Rows of the write side that are in PostgreSQL now; null unless they were copied there. */
  readonly movedRows: number | null
  readonly tookMs: number
}

type Restoring = {
  readonly request: RestoreRequest
  readonly backup: string
  readonly path: string
  readonly manifest: Manifest
  readonly ledger: LedgerFile | undefined
  /** The record of an interrupted restore into this directory; else undefined. */
  readonly interrupted: string | undefined
}

/** Created by the file system. */
const STAYS = ['lost+found']
/** Allowed in the target of a restore: no data, but leftovers of a start that was killed early. */
const MAY_BE_THERE = new RegExp(
  `^(lost\\+found|\\.writable|(format\\.json|${OWNER_FILE.replace('.', '\\.')})(\\.\\d+)?)$`
)

/**
 * Restores a backup into a new or empty data directory. Files are verified by their hashes while they are copied; no
 * service starts on the directory until all are complete. A failed restore leaves the directory as it was: absent,
 * empty, or half restored by an earlier attempt.
 */
export async function restore(request: RestoreRequest): Promise<RestoreReport> {
  const backup = resolve(request.backup)
  const path = resolve(request.dataDirectory)
  await refuseInside(path, backup)
  const manifest = await readManifest(backup)
  await refuseNewer(backup, manifest)
  const ledger = request.ledger === undefined ? undefined : await readLedgerFile(request.ledger)
  await refuseFilled(path)
  const interrupted = await readFile(join(path, RESTORING_FILE), 'utf8').catch(() => undefined)
  let made: string | undefined
  try {
    made = await mkdirWritable(path)
    await refuseLowDisk(path, manifest.bytes)
    return await restoreInto({ request, backup, path, manifest, ledger, interrupted })
  } catch (error) {
    if (made !== undefined) await removeEmpty(path, made)
    throw (await unwritableDisk(path, error)) ?? error
  }
}

async function restoreInto({
  request,
  backup,
  path,
  manifest,
  ledger,
  interrupted
}: Restoring): Promise<RestoreReport> {
  const begun = performance.now()
  const directory = await claimDataDirectory(path, VERSIONS, 'restore')
  try {
    await writeFile(directory.part(RESTORING_FILE), `${backup}\n`, { flush: true })
    await flushPath(path)
    await empty(path)
    await copyIn(request, { backup, path, manifest })
    // Clients know positions behind the end of the backup: events at the same positions would be missing in their
    // streams.
    await openEmbeddedLog({ path: directory.part('log'), epoch: 'next' }).close()
    const toErase = ledger === undefined ? null : await mergeLedgerInto(directory.part('writes'), ledger)
    await flushTree(path)
    const movedRows = request.postgresUrl === undefined ? null : await moveWrites(directory, request.postgresUrl)
    await rm(directory.part(RESTORING_FILE))
    await flushPath(path)
    const { createdAt, files, bytes } = manifest
    const tookMs = Math.round(performance.now() - begun)
    return { dataDirectory: path, createdAt, files, bytes, toErase, movedRows, tookMs }
  } catch (error) {
    await empty(path)
    // A half-restored directory keeps its marker, so that no service starts there.
    if (interrupted !== undefined) await writeFile(directory.part(RESTORING_FILE), interrupted)
    else await rm(directory.part(RESTORING_FILE), { force: true })
    throw error
  } finally {
    await directory.release()
  }
}

async function copyIn(
  { onProgress, signal }: RestoreRequest,
  { backup, path, manifest }: { readonly backup: string; readonly path: string; readonly manifest: Manifest }
): Promise<void> {
  let done = 0
  const list = join(backup, ENTRIES_FILE)
  const { differs } = await copyFiles(
    { kind: 'listed', list, from: join(backup, DATA_FOLDER), root: path },
    {
      signal,
      onBytes: (bytes) => {
        done += bytes
        onProgress(done, manifest.bytes)
      }
    }
  )
  if (differs !== null) throw damaged(backup, differs)
}

async function moveWrites(directory: { part(name: string): string }, url: string): Promise<number> {
  const from = await openPglite({ dir: directory.part('writes') })
  const to = openPostgres({ url })
  try {
    return await copyWrites(from, to)
  } finally {
    await from.close()
    await to.close()
  }
}

async function mergeLedgerInto(dir: string, ledger: LedgerFile): Promise<number> {
  const writes = await openPglite({ dir })
  try {
    await migratePostgres(writes)
    return await mergeLedger(writes, ledger)
  } finally {
    await writes.close()
  }
}

async function refuseNewer(backup: string, { program, dataFormat, migrations }: Manifest): Promise<void> {
  const known = new Set((await readMigrations()).map(({ name }) => name))
  const unknown = [
    ...(dataFormat > DATA_FORMAT ? [`format ${dataFormat} of the data directory`] : []),
    ...migrations.tables.filter((name) => !known.has(name)).map((name) => `the migration ${name} of the tables`),
    ...(migrations.writes > (await newestMigration()) ? [`migration ${migrations.writes} of the write side`] : [])
  ]
  if (unknown.length === 0) return
  throw new FailureError(
    `The backup ${backup} was written by a newer program (version ${program}): this one does not know ` +
      `${unknown.join(', ')}. Restore it with that program.`
  )
}

/**
 * Refuses a data directory inside the backup, which a service would damage, or around it, which the restore would
 * empty.
 */
async function refuseInside(path: string, backup: string): Promise<void> {
  if (!(await isInside(path, backup)) && !(await isInside(backup, path))) return
  throw new UsageError(
    `The data directory ${path} is inside the backup ${backup}, or contains it. Give DATA_DIR a folder outside it.`
  )
}

async function refuseFilled(path: string): Promise<void> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return []
    if (error.code === 'ENOTDIR') throw new UsageError(`DATA_DIR ${path} is a file; give it a folder.`)
    throw error
  })
  if (names.includes(RESTORING_FILE)) return
  const found = names.filter((name) => !MAY_BE_THERE.test(name))
  if (found.length === 0) return
  throw new FailureError(
    `The data directory ${path} is not empty (${found[0]}). Stop its service and move it away, or give DATA_DIR a ` +
      `new folder; \`--ledger\` reads from it the users erased since the backup.`
  )
}

/** Removes the empty folders from `path` up to `first`. */
async function removeEmpty(path: string, first: string): Promise<void> {
  for (let folder = path; folder.length >= first.length; folder = dirname(folder)) {
    const isRemoved = await rmdir(folder).then(
      () => true,
      () => false
    )
    if (!isRemoved) return
  }
}

/** Empties a directory except for the file that names its owner. */
async function empty(path: string): Promise<void> {
  const keep = [OWNER_FILE, RESTORING_FILE, ...STAYS]
  for (const name of await readdir(path)) {
    if (!keep.includes(name)) await rm(join(path, name), { recursive: true, force: true })
  }
}
