import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorCode, parseJson } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError } from '../../config.js'

/*
 * backup     a directory: `backup.json`, `files.ndjson`, and `data/`, the content of a data directory
 * manifest   `backup.json`: program, time and size of the backup, and the hash of the list of files
 * entry      one line of `files.ndjson`
 */

export const MANIFEST_FILE = 'backup.json'
export const ENTRIES_FILE = 'files.ndjson'
export const DATA_FOLDER = 'data'
/** Marks an unfinished backup, which may be removed. */
export const UNFINISHED_FILE = 'unfinished'

/** Returns the path of a backup's draft, next to its target. */
export const draftOf = (target: string): string => join(dirname(target), `${basename(target)}.unfinished`)

/** Incremented when an older program can no longer restore a new backup. */
export const BACKUP_FORMAT = 1

export const Manifest = z.object({
  format: z.int(),
  program: z.string(),
  /** Format of the data directory. */
  dataFormat: z.int(),
  /** Version of the engine that wrote the tables. */
  tablesVersion: z.string(),
  /** Applied migrations of tables and write side. */
  migrations: z.object({ tables: z.array(z.string()), writes: z.int() }),
  /** Everything acknowledged before is in the backup. */
  createdAt: z.string(),
  files: z.int(),
  bytes: z.int(),
  /** SHA-256 of the list of files. */
  sha256: z.string()
})
export type Manifest = z.infer<typeof Manifest>

/** Linux takes no longer path. */
const PATH_LENGTH_MAX = 4096

const InnerPath = z.string().max(PATH_LENGTH_MAX).refine(isInnerPath)

/**
 * Paths are relative to `data/`, and lead out of it neither by themselves nor as links. Only empty folders are
 * listed.
 */
export const Entry = z.union([
  z.object({ path: InnerPath, bytes: z.int(), sha256: z.string() }),
  z.object({ path: InnerPath, link: z.string() }).refine(({ path, link }) => isInnerLink(path, link)),
  z.object({ path: InnerPath, isFolder: z.literal(true) })
])
export type Entry = z.infer<typeof Entry>

/** Returns whether a path names a place below its folder, and only by the names of what it passes. */
function isInnerPath(path: string): boolean {
  return !path.includes('\0') && path.split('/').every((name) => !['', '.', '..'].includes(name))
}

/**
 * Returns whether the link at a path leads to another place in the folder of the path. After `..` as the first names
 * alone, no other link on the way can lead out; a link to a folder above itself would have no end.
 */
export function isInnerLink(path: string, link: string): boolean {
  const [, ups = '', down = ''] = /^((?:\.\.\/)*)(.*?)\/?$/s.exec(link) ?? []
  const above = path.split('/').slice(0, -1)
  const left = above.length - ups.length / '../'.length
  const target = [...above.slice(0, Math.max(0, left)), down, ''].join('/')
  return left >= 0 && isInnerPath(down) && !`${path}/`.startsWith(target)
}

/** Reads a manifest. Throws a `FailureError` if the backup is incomplete or of a newer program. */
export async function readManifest(directory: string): Promise<Manifest> {
  const file = join(directory, MANIFEST_FILE)
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (!/^(ENOENT|ENOTDIR)$/.test(errorCode(error))) throw error
  })
  if (text === undefined)
    throw new FailureError(
      `${directory} is not a complete backup: it has no ${MANIFEST_FILE}. Give a directory that \`gamenet backup\` ` +
        `wrote.`
    )
  const format = z.object({ format: z.int(), program: z.string() }).safeParse(parseJson(text))
  if (format.success && format.data.format > BACKUP_FORMAT)
    throw new FailureError(
      `The backup ${directory} has format ${format.data.format}, written by version ${format.data.program}; this ` +
        `program reads formats up to ${BACKUP_FORMAT}. Restore it with that version.`
    )
  const manifest = Manifest.safeParse(parseJson(text))
  if (!manifest.success) throw damaged(directory, `${MANIFEST_FILE} cannot be read`)
  if ((await hashOfFile(join(directory, ENTRIES_FILE)).catch(() => '')) !== manifest.data.sha256)
    throw damaged(directory, `${ENTRIES_FILE} is not the file of this backup`)
  return manifest.data
}

export function damaged(directory: string, why: string): FailureError {
  return new FailureError(
    `The backup ${directory} is damaged: ${why}. Nothing was restored; take another copy of it, or an older backup.`
  )
}

export async function hashOfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}
