import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { PGlite } from '@electric-sql/pglite'
import { versionOf } from '../engine-versions.js'

/** Beside the compiled program, as it belongs to the very package that made it. */
const TEMPLATE = fileURLToPath(new URL(`../../empty-cluster-${versionOf('@electric-sql/pglite')}`, import.meta.url))

/**
 * Lays a new database cluster into an empty directory; does nothing to another one. Making a cluster takes 6 s of processor
 * time, so it is made once for a program and copied from then on. The directory has all of it or nothing, whatever dies.
 */
export const layEmptyCluster = async (dir: string): Promise<void> => {
  if ((await readdir(dir)).length > 0 || !(await hasTemplate())) return
  const draft = `${dir}.new`
  await rm(draft, { recursive: true, force: true })
  await cp(TEMPLATE, draft, { recursive: true })
  await rename(draft, dir)
}

/** False where the program's folder cannot be written: PostgreSQL makes each cluster itself then. */
const hasTemplate = async (): Promise<boolean> => {
  if (existsSync(TEMPLATE)) return true
  const draft = await mkdtemp(`${TEMPLATE}.`).catch(() => undefined)
  if (draft === undefined) return false
  try {
    const database = await PGlite.create({ dataDir: draft })
    await database.close()
    await rename(draft, TEMPLATE)
    return true
  } catch {
    // Another process was first, or the disk is full.
    return existsSync(TEMPLATE)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}
