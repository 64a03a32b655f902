import { accessSync, constants, type Dirent, readdirSync, readlinkSync, statSync } from 'node:fs'
import { readdir, readlink, stat } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { errorCode } from '@gamenet/schemas'
import { FailureError, UsageError } from '../config.js'

/*
 * Sentences about files that cannot be used: the path, what was found there, what was expected and what to do.
 */

const { R_OK, W_OK, X_OK } = constants

/**
 * Refuses a data directory with an entry of the wrong kind, or with a file that this user cannot open: an engine would
 * take it for damaged and detach it. Takes 6 µs a file.
 * @param folders the names of its folders; files of the service end with `.json`
 */
export async function refuseUnusable(directory: string, folders: readonly string[]): Promise<void> {
  for (const name of await readdir(directory)) {
    const isFolder = folders.includes(name)
    if (!isFolder && !name.endsWith('.json')) continue
    const path = join(directory, name)
    const found = await stat(path).catch(() => undefined)
    const link = found === undefined ? await readlink(path).catch(() => undefined) : undefined
    if (link !== undefined)
      throw new FailureError(`${path} is a link to ${link}, which is missing. Mount its disk, or remove the link.`)
    if (found !== undefined && found.isDirectory() !== isFolder)
      throw new FailureError(kindSentence(path, isFolder, directory))
    const denied = found === undefined ? undefined : firstDenied(path, isFolder)
    const sentence = denied && sentenceOf(denied.code, denied.path, directory)
    if (sentence !== undefined) throw new FailureError(sentence)
  }
}

/** Returns the failure for an error of the file system, or for an error that it caused; undefined for other errors. */
export function fileFailure(error: unknown, directory: string): FailureError | undefined {
  if (!(error instanceof Error) || error instanceof FailureError || error instanceof UsageError) return undefined
  const path = 'path' in error && typeof error.path === 'string' ? resolve(error.path) : undefined
  const sentence = path === undefined ? undefined : sentenceOf(errorCode(error), path, resolve(directory))
  return sentence === undefined ? fileFailure(error.cause, directory) : new FailureError(sentence)
}

function sentenceOf(code: string, path: string, directory: string): string | undefined {
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return deniedSentence(culpritOf(path), directory)
    case 'EROFS':
      return readOnlySentence(path, directory)
    case 'EISDIR':
      return kindSentence(path, false, directory)
    case 'ENOTDIR':
      return kindSentence([path, targetOf(path)].flatMap(foldersTo).find(isFile) ?? path, true, directory)
    case 'EIO':
      return (
        `The disk cannot read or write ${path} (EIO); the kernel's log (dmesg) has the reason. Copy the data ` +
        `directory to another disk, set DATA_DIR, and run gamenet verify.`
      )
    case 'EMFILE':
    case 'ENFILE':
      return (
        `${path} cannot be opened, because too many files are open (${code}). Raise the limit: ulimit -n, or ` +
        `LimitNOFILE of systemd.`
      )
    default:
      return undefined
  }
}

/** Returns what to do about a path on a file system that takes no writes. */
export function readOnlySentence(path: string, directory: string): string {
  if (!isInside(path, directory))
    return `The file system of ${path} is mounted read-only. Mount it for writing, or give another path.`
  return (
    `The file system of ${path} is mounted read-only, as the kernel does after errors of a disk (dmesg). Stop ` +
    `the service, repair the file system (fsck) and mount it for writing; or copy the data directory to another disk ` +
    `and set DATA_DIR.`
  )
}

function kindSentence(path: string, isFolderExpected: boolean, directory: string): string {
  const found = isFolderExpected ? `${path} is a file; expected a folder.` : `${path} is a folder; expected a file.`
  if (!isInside(path, directory)) return `${found} Give another path.`
  return isFolderExpected
    ? `${found} Move the file away and put the folder back, or restore the newest backup (gamenet restore DIR).`
    : `${found} Move the folder away; the service writes its files again.`
}

function deniedSentence(path: string, directory: string): string {
  const { uid, mode } = statSync(path)
  const me = process.getuid?.()
  const found =
    `${path} belongs to user ${uid} and has the mode ${(mode & 0o777).toString(8)}; this process, of ` +
    `user ${me}, cannot open it`
  if (me === 0) return `${found}: it is immutable (lsattr, chattr -i), or on a network file system that refuses root.`
  if (uid === me) return `${found}. Repair: chmod -R u+rwX ${path}.`
  const asOther = `run this as that user (sudo -u '#${uid}')`
  return isInside(path, directory)
    ? `${found}. Repair: chown -R ${me} ${directory}, as root; or ${asOther}.`
    : `${found}. Give another path, or ${asOther}.`
}

/** Returns whether a path is a directory or inside it. */
export const isInside = (path: string, directory: string): boolean => `${path}${sep}`.startsWith(`${directory}${sep}`)

/**
 * Returns what this user cannot open on the way to a path: a folder above it, the path, or its folder, which cannot be
 * changed.
 */
function culpritOf(path: string): string {
  const closed = foldersTo(path).find((folder) => !permits(folder, X_OK))
  return closed ?? (permits(path, R_OK | W_OK) || codeOfAccess(path, R_OK) === 'ENOENT' ? dirname(path) : path)
}

/** Returns the folders above a path, from the root on. */
function foldersTo(path: string): string[] {
  const above = dirname(path)
  return above === path ? [] : [...foldersTo(above), above]
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** Returns the target of a link; the path itself if it is none. */
function targetOf(path: string): string {
  try {
    return resolve(dirname(path), readlinkSync(path))
  } catch {
    return path
  }
}

/** Returns the first file or folder that this user cannot open. The engines make some files of their own read-only. */
function firstDenied(path: string, isFolder: boolean): { readonly path: string; readonly code: string } | undefined {
  const code = codeOfAccess(path, isFolder ? R_OK | W_OK | X_OK : R_OK | W_OK)
  const isReadOnly = code === 'EACCES' && !isFolder && permits(path, R_OK) && statSync(path).uid === process.getuid?.()
  // A running process removes files meanwhile.
  if (code !== undefined && code !== 'ENOENT' && !isReadOnly) return { path, code }
  for (const entry of isFolder && code === undefined ? entriesOf(path) : []) {
    const denied = firstDenied(join(path, entry.name), entry.isDirectory())
    if (denied !== undefined) return denied
  }
  return undefined
}

function entriesOf(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true })
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}

const permits = (path: string, mode: number): boolean => codeOfAccess(path, mode) === undefined

/** Returns the code of the error with which this user's access is refused. */
function codeOfAccess(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return errorCode(error)
  }
}
