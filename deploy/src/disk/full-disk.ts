import { LogDamaged } from '@gamenet/engines/log'
import { bytesText, errorCode } from '@gamenet/schemas'
import { FailureError, UsageError } from '../config.js'
import { type DiskSpace, freeText, readSpace } from './disk-space.js'

/** With less free space no engine starts, and not every engine reports the reason. */
const START_BYTES_MIN = 1024 * 1024

/**
 * Returns the failure for a start that failed because the data directory's disk is full: it names the disk and what to
 * free. Undefined for any other failure.
 */
export async function fullDisk(path: string, error: unknown): Promise<FailureError | undefined> {
  const [disk] = await readSpace([path]).catch(() => [])
  const isFull = disk !== undefined && disk.freeBytes < START_BYTES_MIN && !isExplained(error)
  return isFull || saysFull(error) ? new FailureError(fullDiskSentence(path, disk)) : undefined
}

/** Returns whether an error has its own sentence for the user, which is shown on a full disk too. */
function isExplained(error: unknown): boolean {
  return error instanceof FailureError || error instanceof UsageError || error instanceof LogDamaged
}

function fullDiskSentence(path: string, disk: DiskSpace | undefined): string {
  const found =
    disk === undefined ? '' : `: it has ${freeText(disk)}, ${bytesText(disk.sizeBytes)} in all, and a write needs more`
  return (
    `The disk of the data directory ${path} is full${found}. Free space on it (backups, log files and other files that ` +
    'are not of the service), or copy the data directory to a larger disk and set DATA_DIR; delete nothing inside it.'
  )
}

/** Returns whether an error, or one of its causes, reports a full disk or an exhausted quota. */
export function saysFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const text = `${errorCode(error)} ${error.message}`
  return /\b(ENOSPC|EDQUOT|disk_full|NOT_ENOUGH_SPACE)\b|No space left on device/i.test(text) || saysFull(error.cause)
}
