import { createHash } from 'node:crypto'
import { appendFile, mkdir, readdir, rename, rm, rmdir, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import type { ClickHouse, Postgres } from '@gamenet/engines'
import { flushPath, flushTree, makeFolder } from '@gamenet/engines/files'
import type { EmbeddedLog } from '@gamenet/engines/log'
import { readMigrationsApplied, storeOver } from '@gamenet/projector'
import { bytesText, errorCode } from '@gamenet/schemas'
import { FailureError, UsageError } from '../../config.js'
import { DATA_FORMAT, type DataDirectory, isInside, OWNER_FILE } from '../../data-directory/data-directory.js'
import { saysFull } from '../../data-directory/disk-errors.js'
import { bytesOfTables } from '../../data-directory/disk-usage.js'
import { type Frozen, freezeTables, unfreeze } from '../../stores/freeze.js'
import { VERSION } from '../../version.js'
import type { BackupProgress, BackupReport } from './backup-report.js'
import { copyFiles } from './copy.js'
import {
  BACKUP_FORMAT,
  DATA_FOLDER,
  draftOf,
  ENTRIES_FILE,
  type Entry,
  hashOfFile,
  MANIFEST_FILE,
  type Manifest,
  UNFINISHED_FILE
} from './manifest.js'

export type BackupNeeds = {
  readonly directory: DataDirectory
  readonly log: Pick<EmbeddedLog, 'heads' | 'copyTo'>
  readonly clickhouse: Pick<ClickHouse, 'control' | 'version'>
  readonly writes: Postgres
  readonly onProgress: (progress: BackupProgress) => void
  readonly signal: AbortSignal
}

/** Free space required besides the backup, because the service continues to write. */
const SPARE_BYTES = 256 * 1024 * 1024
/** Name of the frozen files; one backup runs at a time. */
const FROZEN = 'backup'
/** Parts of the data directory with their own copy procedure, or without use to another process. */
const NOT_COPIED = [OWNER_FILE, 'log', 'tables', 'writes', 'uploads', 'exports']

/**
 * Copies all data of a running service. A service that starts on the copy gives the same answers. Atomic: written next
 * to `target`, then renamed.
 *
 * Order: tables, checkpoints first → write side and, at the same instant, the end of the log → log up to that end. So
 * the log contains every event in the tables and every event that has left the outbox, and every person in it has a
 * key. The service that starts on the copy loads what the tables lack.
 */
export async function backUp(needs: BackupNeeds, target: string): Promise<BackupReport> {
  const begun = performance.now()
  const { directory } = needs
  await refuseTarget(target, directory.path)
  const needed = await bytesOf(needs)
  await refuseLowDisk(dirname(target), needed)
  const draft = draftOf(target)
  await removeUnfinished(draft)
  // The folder contains seal keys and user data.
  await mkdir(draft, { mode: 0o700 })
  try {
    await writeFile(join(draft, UNFINISHED_FILE), '')
    await mkdir(join(draft, DATA_FOLDER))
    const manifest = await fill(needs, draft, needed)
    await writeFile(join(draft, MANIFEST_FILE), `${JSON.stringify(manifest)}\n`)
    needs.onProgress({ phase: 'flushing', bytes: manifest.bytes, bytesTotal: manifest.bytes })
    await flushTree(draft)
    await rmdir(target).catch(ignoreAbsent)
    await rename(draft, target)
    await flushPath(dirname(target))
    // Without this file the draft looks foreign, and the next backup does not remove it.
    await rm(join(target, UNFINISHED_FILE))
    await flushPath(target)
    const { createdAt, files, bytes } = manifest
    return { directory: target, createdAt, files, bytes, tookMs: Math.round(performance.now() - begun) }
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw sentenceOf(error, target)
  } finally {
    await unfreeze(directory.part('tables'), FROZEN)
  }
}

async function fill(needs: BackupNeeds, draft: string, needed: number): Promise<Manifest> {
  const { directory, log, clickhouse, writes, onProgress, signal } = needs
  const root = join(draft, DATA_FOLDER)
  const list = join(draft, ENTRIES_FILE)
  const total = { files: 0, bytes: 0 }
  const copy = async (phase: BackupProgress['phase'], trees: { from: string; to: string }[]) => {
    let done = total.bytes
    const onBytes = (bytes: number) => {
      done += bytes
      onProgress({ phase, bytes: done, bytesTotal: Math.max(done, needed) })
    }
    const { files, bytes, differs } = await copyFiles({ kind: 'trees', root, list, trees }, { signal, onBytes })
    if (differs !== null) throw new FailureError(`No backup is possible: ${differs}. Put what it names in its place.`)
    total.files += files
    total.bytes += bytes
  }
  // Journals of the log's appends; never ahead of the log.
  const rest = (await readdir(directory.path)).filter(
    (name) => !NOT_COPIED.includes(name) && !name.startsWith(OWNER_FILE)
  )
  await copy(
    'journals',
    rest.map((name) => ({ from: directory.part(name), to: name }))
  )
  onProgress({ phase: 'tables', bytes: total.bytes, bytesTotal: needed })
  const migrations = await migrationsOf(clickhouse.control, writes)
  const frozen = await freezeTables(clickhouse.control, directory.part('tables'), FROZEN)
  await writes.script('CHECKPOINT')
  const createdAt = new Date().toISOString()
  // Until this ends the write side answers nothing else, so its files do not change.
  const heads = await writes.transaction(async (transaction) => {
    await transaction.query('SELECT 1')
    const ends = log.heads()
    await copy('writes', [{ from: directory.part('writes'), to: 'writes' }])
    return ends
  })
  await writeTexts(frozen, root, list, total)
  await copy(
    'tables',
    frozen.trees.map(({ from, to }) => ({ from, to: join('tables', to) }))
  )
  onProgress({ phase: 'log', bytes: total.bytes, bytesTotal: Math.max(total.bytes, needed) })
  const logCopy = join(draft, 'log')
  await log.copyTo(logCopy, heads)
  await copy('log', [{ from: join(logCopy, 'data.mdb'), to: 'log/data.mdb' }])
  await rm(logCopy, { recursive: true })
  return {
    format: BACKUP_FORMAT,
    program: VERSION,
    dataFormat: DATA_FORMAT,
    tablesVersion: await clickhouse.version(),
    migrations,
    createdAt,
    ...total,
    sha256: await hashOfFile(list)
  }
}

async function writeTexts(
  { texts }: Frozen,
  root: string,
  list: string,
  total: { files: number; bytes: number }
): Promise<void> {
  const entries: Entry[] = []
  for (const [name, text] of texts) {
    const path = join('tables', name)
    const bytes = Buffer.from(text)
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), bytes)
    entries.push({ path, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') })
    total.files += 1
    total.bytes += bytes.length
  }
  await appendFile(list, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
}

async function migrationsOf(tables: ClickHouse['control'], writes: Postgres): Promise<Manifest['migrations']> {
  const names = await storeOver(tables).do(readMigrationsApplied)
  const [newest] = await writes.query<{ version: number }>(
    'SELECT max(m.version)::int AS version FROM schema_migration AS m'
  )
  return { tables: [...names.keys()], writes: newest?.version ?? 0 }
}

async function refuseTarget(target: string, dataDirectory: string): Promise<void> {
  if (!isAbsolute(target)) throw new UsageError(`The backup's directory must be an absolute path; got ${target}.`)
  if ((await isInside(target, dataDirectory)) || (await isInside(dataDirectory, target)))
    throw new UsageError(
      `The backup cannot be written to ${target}: the data directory is ${dataDirectory}. Give a directory outside ` +
        `it, preferably on another disk.`
    )
  const names = await readdir(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTDIR') return ignoreAbsent(error)
    throw new UsageError(`${target} is a file, or inside one; a backup needs a new or empty directory.`)
  })
  if (names !== undefined && names.length > 0)
    throw new FailureError(
      `${target} is not empty (${names[0]}); a backup needs a new or empty directory. Give another one, or remove it.`
    )
  try {
    makeFolder(dirname(target))
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    throw new UsageError(`${dirname(target)} cannot be created (ENOENT); give another directory.`)
  }
}

/** An estimate of the copy's size. */
async function bytesOf({ directory, clickhouse }: BackupNeeds): Promise<number> {
  let bytes = await bytesOfTables(clickhouse.control, 'active')
  const isCounted = (name: string) => !['tables', 'uploads', 'exports'].includes(name)
  const names = (await readdir(directory.path)).filter(isCounted)
  for (const name of names) bytes += await bytesUnder(directory.part(name))
  return bytes
}

async function bytesUnder(path: string): Promise<number> {
  const found = await stat(path).catch(ignoreAbsent)
  if (found === undefined) return 0
  if (!found.isDirectory()) return found.size
  let bytes = 0
  for (const name of await readdir(path)) bytes += await bytesUnder(join(path, name))
  return bytes
}

/** Throws unless the disk has space for `needed` bytes and a reserve. */
export async function refuseLowDisk(folder: string, needed: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (free >= needed + SPARE_BYTES) return
  throw new FailureError(
    `The disk of ${folder} has ${bytesText(free)} free; this needs ${bytesText(needed)}, and ` +
      `${bytesText(SPARE_BYTES)} must stay free. Free some space, or use another disk.`
  )
}

/** Removes the draft of a killed backup. */
async function removeUnfinished(draft: string): Promise<void> {
  const names = await readdir(draft).catch(ignoreAbsent)
  if (names === undefined) return
  if (names.length > 0 && !names.includes(UNFINISHED_FILE))
    throw new FailureError(
      `${draft} is needed for the unfinished backup, and contains something else (${names[0]}). Move it away.`
    )
  await rm(draft, { recursive: true })
}

function ignoreAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

function sentenceOf(error: unknown, target: string): unknown {
  if (!saysFull(error)) return error
  return new FailureError(
    `The disk of ${target} or of the data directory became full; nothing is left in ${target}. Free some space, or ` +
      `use another disk.`
  )
}
