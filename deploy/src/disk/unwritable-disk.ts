import { LogDamaged } from '@gamenet/engines/log'
import { bytesText, errorCode } from '@gamenet/schemas'
import { FailureError, UsageError } from '../config.js'
import { type DiskSpace, freeText, readSpace } from './disk-space.js'
import { readOnlySentence } from './file-failure.js'

/** With less free space no engine starts, and not every engine reports the reason. */
const START_BYTES_MIN = 1024 * 1024

/**
 * Returns the failure for work that failed because the data directory's disk is full or read-only: it names the disk and
 * what to do, after what the error says for the user. Undefined for any other failure.
 */
export async function unwritableDisk(path: string, error: unknown): Promise<FailureError | undefined> {
  if (error instanceof UsageError) return undefined
  const said = isExplained(error) ? `${error.message} ` : ''
  if (says(READ_ONLY, error)) return new FailureError(said + readOnlySentence(path))
  const [disk] = await readSpace([path]).catch(() => [])
  const isFull = disk !== undefined && disk.freeBytes < START_BYTES_MIN && said === ''
  return isFull || saysFull(error) ? new FailureError(said + fullDiskSentence(path, disk)) : undefined
}

/** Returns whether an error has its own sentence for the user, which is shown on a full disk too. */
function isExplained(error: unknown): error is Error {
  return error instanceof FailureError || error instanceof LogDamaged
}

function fullDiskSentence(path: string, disk: DiskSpace | undefined): string {
  const found =
    disk === undefined ? '' : `: it has ${freeText(disk)}, ${bytesText(disk.sizeBytes)} in all, and a write needs more`
  return (
    `The disk of the data directory ${path} is full${found}. Free space on it (backups, log files and other files that ` +
    'are not of the service), or copy the data directory to a larger disk and set DATA_DIR; delete nothing inside it.'
  )
}

/** As the kernel, PostgreSQL, ClickHouse and the embedded log report it. */
const FULL = /\b(ENOSPC|EDQUOT|disk_full|NOT_ENOUGH_SPACE)\b|No space left on device|the disk is full/i
const READ_ONLY = /\bEROFS\b|Read-only file system/i

/** Returns whether an error, or one of its causes, reports a full disk or an exhausted quota. */
export function saysFull(error: unknown): boolean {
  return says(FULL, error)
}

function says(what: RegExp, error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return what.test(`${errorCode(error)} ${error.message}`) || says(what, error.cause)
}
