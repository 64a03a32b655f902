import { Refusal } from '@gamenet/schemas'

/** SQLSTATE of a statement without free disk space; its transaction is rolled back. */
export const DISK_FULL = '53100'

/** Operators free space by hand. */
const RETRY_SECONDS = 60

export function diskFull(cause: unknown): Refusal {
  return new Refusal('disk_full', [], { retryAfterSeconds: RETRY_SECONDS, cause })
}

/** Returns whether PostgreSQL's error text reports a full disk, an exhausted quota or a disk that became read-only. */
export function saysDiskFull(text: string): boolean {
  return /No space left on device|Disk quota exceeded|Read-only file system/i.test(text)
}
