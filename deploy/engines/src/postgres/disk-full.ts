import { Refusal } from '@gamenet/schemas'

/** SQLSTATE of a statement that found no free space on the disk; its transaction is rolled back. */
export const DISK_FULL = '53100'

/** Operators free space by hand. */
const RETRY_SECONDS = 60

export function diskFull(cause: unknown): Refusal {
  return new Refusal('disk_full', [], { retryAfterSeconds: RETRY_SECONDS, cause })
}

/** Whether PostgreSQL's text of an error says that the disk, or the user's share of it, is full. */
export function saysDiskFull(text: string): boolean {
  return /No space left on device|Disk quota exceeded/.test(text)
}
