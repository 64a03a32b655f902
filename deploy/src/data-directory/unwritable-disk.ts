import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { LogDamaged } from '@gamenet/engines/log'
import { bytesText } from '@gamenet/schemas'
import { FailureError, UsageError } from '../config.js'
import { saysReadOnly, saysUnwritable } from './disk-errors.js'
import { FULL_BYTES } from './disk-guard.js'
import { type DiskSpace, freeText, readSpace } from './disk-space.js'
import { isInside, readOnlySentence } from './file-failure.js'

/** With less free space no engine starts, and not every engine reports the reason. */
const START_BYTES_MIN = 1024 * 1024

/**
 * Returns the failure for work that failed because the data directory's disk is full or read-only: it names the disk
 * and what to do, after what the error says for the user. Undefined for any other failure.
 */
export async function unwritableDisk(path: string, error: unknown): Promise<FailureError | undefined> {
  if (error instanceof UsageError) return undefined
  if (error instanceof UnwritableDisk) return error
  const directory = resolve(path)
  const isSaid = saysUnwritable(error)
  const at = isSaid ? await placeOf(error, directory) : directory
  // A sentence for the user is shown on a full disk too.
  const isExplained = error instanceof FailureError || error instanceof LogDamaged
  const said = isExplained ? `${error.message.replace(/\.?$/, '.')} ` : ''
  const [disk] = await readSpace([at]).catch(() => [])
  // Any error on such a disk is likely to be of it, unless it has its own sentence.
  const isGuessed = said === '' && !isSaid
  if (saysReadOnly(error) || (isGuessed && disk?.isReadOnly))
    return new UnwritableDisk(said + readOnlySentence(at, directory))
  if (!isSaid && !(isGuessed && disk !== undefined && disk.freeBytes < START_BYTES_MIN)) return undefined
  if (at === directory) return new UnwritableDisk(said + fullDiskSentence(path, disk))
  return new UnwritableDisk(`${said}The disk of ${at} is full${foundOn(disk)}. Free space on it.`)
}

/** Is not explained again. */
class UnwritableDisk extends FailureError {}

/** Returns the place outside the directory that an error of a disk is about; the directory if there is none. */
async function placeOf(error: unknown, directory: string): Promise<string> {
  const at = pathIn(error)
  if (at !== undefined) return isInside(at, directory) ? directory : at
  // A failed write names no path. Apart from the directory, the program writes temporary files.
  if (!(error instanceof Error && 'syscall' in error)) return directory
  const [temporary] = await readSpace([tmpdir()]).catch(() => [])
  const [own] = await readSpace([directory]).catch(() => [])
  const isOfTemporary =
    temporary !== undefined && temporary.freeBytes < FULL_BYTES && (own?.freeBytes ?? 0) >= FULL_BYTES
  return isOfTemporary ? tmpdir() : directory
}

/** Returns the path that the first error with one wrote to: the error itself, or its cause. */
function pathIn(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { dest, path }: Error & { dest?: unknown; path?: unknown } = error
  const written = dest ?? path
  return typeof written === 'string' ? resolve(written) : pathIn(error.cause)
}

function foundOn(disk: DiskSpace | undefined): string {
  if (disk === undefined) return ''
  return `: it has ${freeText(disk)}, ${bytesText(disk.sizeBytes)} in all, and a write needs more`
}

function fullDiskSentence(path: string, disk: DiskSpace | undefined): string {
  return (
    `The disk of the data directory ${path} is full${foundOn(disk)}. Free space on it (backups, log files and other ` +
    'files that are not of the service), or copy the data directory to a larger disk and set DATA_DIR; delete ' +
    'nothing inside it.'
  )
}
