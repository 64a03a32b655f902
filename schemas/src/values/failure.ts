import { errorCode } from './error-message.js'

export type FailureCode =
  /** The process of an embedded engine cannot start, whatever its files are. The message says what to do. */
  | 'engine_unstarted'
  /** An import cannot start; nothing was published. The message says what to do. */
  | 'import_refused'
  /** An import was interrupted. Published events stay; the same import, run again, continues after them. */
  | 'import_cut_off'
  /** PostgreSQL has neither a key nor an erasure of people: without those, their events would be lost. */
  | 'keys_unknown'
  /** The log refused events of a scrape. */
  | 'log_refused'
  /** The log did not return the end of a topic. */
  | 'log_unknown'
  /** The log is unavailable or does not answer, in contrast to a log that refuses a request. */
  | 'log_unreachable'
  /** An embedded engine cannot open its files: they are damaged, or of another kind. */
  | 'log_unopened'
  | 'tables_unopened'
  | 'writes_unopened'
  /** A newer program, or another one, has created the tables or the write side. */
  | 'newer_store'
  /** The disk has too little space for the next step. */
  | 'no_space'
  /** The parser of a page did not begin or end in time. */
  | 'page_timeout'
  /** A reading of the log ends for its cause, which a new consumer would meet again. */
  | 'reading_ended'
  /** Tables that were created are missing. */
  | 'tables_missing'
  /** A thread exited while, or before, it was called. */
  | 'thread_exited'
  /** Kafka refuses to create topics: it lacks brokers for the replication, or the right to. */
  | 'topics_refused'

/** An error that its callers recognise by its code, which it keeps between threads. */
export class Failure extends Error {
  constructor(
    readonly code: FailureCode,
    message: string,
    options?: ErrorOptions
  ) {
    super(message, options)
  }
}

/** Returns whether an error has one of these codes, also after it has crossed between threads. */
export function isFailure(error: unknown, ...codes: readonly FailureCode[]): error is Failure {
  return error instanceof Error && codes.some((code) => code === errorCode(error))
}
