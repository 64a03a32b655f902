import { access, constants, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { FailureError, UsageError } from '../config.js'

/**
 * Returns the failure for a start that failed because this user cannot open a file of the data directory: it names the
 * file, its owner and the repair. Undefined if there is none, or if the error has its own sentence for the user.
 */
export async function deniedFile(directory: string, error: unknown): Promise<FailureError | undefined> {
  if (error instanceof FailureError || error instanceof UsageError) return undefined
  const denied = await firstDenied(directory)
  const me = process.getuid?.()
  if (denied === undefined || me === undefined) return undefined
  const repair = denied.uid === me ? `chmod -R u+rwX ${directory}` : `chown -R ${me} ${directory}, as root`
  return new FailureError(
    `${denied.path} belongs to user ${denied.uid} and has the mode ${(denied.mode & 0o777).toString(8)}; this process, of user ${me}, cannot open it. Repair: ${repair}.`
  )
}

type Denied = { readonly path: string; readonly uid: number; readonly mode: number }

/** The engines make some files of their own read-only. */
async function firstDenied(path: string): Promise<Denied | undefined> {
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) return undefined
  const { uid, mode } = found
  const isFolder = found.isDirectory()
  const writes = isFolder || uid !== process.getuid?.() ? constants.W_OK : 0
  const isOpen = await access(path, constants.R_OK | writes | (isFolder ? constants.X_OK : 0)).then(
    () => true,
    () => false
  )
  if (!isOpen) return { path, uid, mode }
  for (const name of isFolder ? await readdir(path) : []) {
    const denied = await firstDenied(join(path, name))
    if (denied !== undefined) return denied
  }
  return undefined
}
