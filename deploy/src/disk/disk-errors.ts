import { errorCode } from '@gamenet/schemas'

/*
 * What an error says of a disk. Apart from the sentences about disks, which load the engines: a command that failed for
 * another reason loads nothing more.
 */

/** As the kernel, PostgreSQL, ClickHouse and the embedded log report it. */
const FULL = /\b(ENOSPC|EDQUOT|disk_full|NOT_ENOUGH_SPACE)\b|No space left on device|the disk is full/i
const READ_ONLY = /\bEROFS\b|Read-only file system/i

/** Returns whether an error, or one of its causes, reports a full disk or an exhausted quota. */
export function saysFull(error: unknown): boolean {
  return says(FULL, error) && !saysReadOnly(error)
}

/** As `saysFull`, for a disk that is read-only. */
export function saysReadOnly(error: unknown): boolean {
  return says(READ_ONLY, error)
}

/** As `saysFull`, also for a disk that is read-only. */
export function saysUnwritable(error: unknown): boolean {
  return saysFull(error) || saysReadOnly(error)
}

function says(what: RegExp, error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return what.test(`${errorCode(error)} ${error.message}`) || says(what, error.cause)
}
