import { errorCode, Refusal } from '@gamenet/schemas'

/*
 * What an error says of a disk. Apart from the sentences about disks, which load the engines: a command that failed for
 * another reason loads nothing more.
 */

/**
 * Of the kernel, of refusals, and of ClickHouse. Engines without codes pass on the kernel's words; the reason of a
 * command that waited is text, in which ClickHouse names its code.
 */
const FULL = {
  codes: ['ENOSPC', 'EDQUOT', 'disk_full', '243'],
  words: /No space left on device|Disk quota exceeded|\(NOT_ENOUGH_SPACE\)/i
}
const READ_ONLY = { codes: ['EROFS'], words: /Read-only file system/i }

/** Returns whether an error, or one of its causes, reports a full disk or an exhausted quota. */
export const saysFull = (error: unknown): boolean => says(FULL, error) && !saysReadOnly(error)

/** As `saysFull`, for a disk that is read-only. */
export const saysReadOnly = (error: unknown): boolean => says(READ_ONLY, error)

/** As `saysFull`, also for a disk that is read-only. */
export const saysUnwritable = (error: unknown): boolean => saysFull(error) || saysReadOnly(error)

function says(what: typeof FULL, error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return what.codes.includes(errorCode(error)) || what.words.test(error.message) || says(what, error.cause)
}

/** Whether an engine refused a statement because its disk is full, which is not damage. */
export const isOfFullDisk = (error: unknown): boolean => error instanceof Refusal && error.code === 'disk_full'
