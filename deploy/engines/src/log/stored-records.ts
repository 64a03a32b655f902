import type { LogRecord } from '@gamenet/schemas'

/** The records of a batch, created on request: 8,192 at once would outlive the young generation. */
export type StoredRecords = {
  readonly count: number
  /** Returns the records from index `from` to below `to`, counted from 0. */
  slice(from: number, to: number): LogRecord[]
  /** The value of the record at an index, without building the record. */
  valueAt(index: number): string
}
