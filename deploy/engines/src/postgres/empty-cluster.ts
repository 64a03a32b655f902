import { accessSync, chmodSync, constants, cpSync, existsSync, lstatSync, readdirSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PGlite } from '@electric-sql/pglite'
import { versionOf } from '../engine-versions.js'
import { flushPath, flushTree } from '../flush-files.js'

/** Next to the compiled program, because it depends on the exact package version. */
const TEMPLATE = fileURLToPath(new URL(`../../empty-cluster-${versionOf('@electric-sql/pglite')}`, import.meta.url))

/** What a cluster cannot do without. Without `PG_VERSION` PGlite would create a new cluster over the tables. */
const NEEDED = ['PG_VERSION', 'base', 'global', 'pg_multixact', 'pg_wal', 'pg_xact']
/**
 * Files of settings, the same in every cluster: all others are parameters of a start. PGlite does not start without
 * them.
 */
const SETTINGS = {
  'postgresql.conf': 'timezone = UTC\nlog_timezone = UTC\nlc_messages = C\n',
  'postgresql.auto.conf': '',
  'pg_hba.conf': 'local all all trust\n',
  'pg_ident.conf': ''
}
/**
 * Folders without which PostgreSQL fails at its next stop. A start fills them; most are empty, so a copy may lack them.
 */
const FILLED_BY_START = [
  ...['pg_commit_ts', 'pg_dynshmem', 'pg_notify', 'pg_replslot', 'pg_serial', 'pg_snapshots', 'pg_stat', 'pg_stat_tmp'],
  ...['pg_subtrans', 'pg_tblspc', 'pg_twophase', 'pg_wal/archive_status', 'pg_wal/summaries'],
  ...['pg_logical/mappings', 'pg_logical/snapshots']
]

/**
 * Copies a new database cluster into an empty directory. In any other directory it only creates folders that a cluster
 * can lack, writes damaged settings again, and refuses it if something else is missing. Creating a cluster takes 6 s of
 * processor time, so it is created once per program and copied. The directory has all of it or nothing, also after a
 * crash or power loss.
 */
export const layEmptyCluster = async (dir: string): Promise<void> => {
  const names = await readdir(dir)
  if (names.length > 0) {
    const missing = NEEDED.find((name) => !names.includes(name))
    if (missing !== undefined) throw new Error(`its file or folder ${missing} is missing`)
    for (const name of FILLED_BY_START) await mkdir(join(dir, name), { recursive: true, mode: 0o700 })
    for (const [name, text] of Object.entries(SETTINGS)) {
      const found = await readFile(join(dir, name), 'utf8').catch(() => undefined)
      if (found !== text) await writeFile(join(dir, name), text, { mode: 0o600 })
    }
    makePrivate(dir)
    return
  }
  const draft = `${dir}.new`
  await rm(draft, { recursive: true, force: true })
  // Its 1,000 files take 50 ms of processor time; the asynchronous copy takes 200.
  if (await hasTemplate()) cpSync(TEMPLATE, draft, { recursive: true })
  else await makeCluster(draft)
  makePrivate(draft)
  await moveComplete(draft, dir)
}

/**
 * Takes files and folders from other users: PGlite gives the files of a new cluster to everybody, whatever the
 * process's mask, and the template's folders have the mask of the process that made it. Takes 10 ms.
 */
const makePrivate = (dir: string): void => {
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isSymbolicLink() && (lstatSync(path).mode & 0o077) !== 0) chmodSync(path, entry.isFile() ? 0o600 : 0o700)
  }
}

const makeCluster = async (dir: string): Promise<void> => {
  await mkdir(dir, { recursive: true })
  const database = await PGlite.create({ dataDir: dir })
  await database.close()
}

/** Flushes the files before they get their final name. */
const moveComplete = async (draft: string, dir: string): Promise<void> => {
  await flushTree(draft)
  await rename(draft, dir)
  await flushPath(dirname(dir))
}

/** Returns false if the program's folder is not writable, or if its template is private to another user. */
const hasTemplate = async (): Promise<boolean> => {
  if (existsSync(TEMPLATE)) return isReadable(TEMPLATE)
  const draft = await mkdtemp(`${TEMPLATE}.`).catch(() => undefined)
  if (draft === undefined) return false
  try {
    await makeCluster(draft)
    await moveComplete(draft, TEMPLATE)
    return true
  } catch {
    // Another process was first, or the disk is full.
    return isReadable(TEMPLATE)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

const isReadable = (path: string): boolean => {
  try {
    accessSync(path, constants.R_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}
