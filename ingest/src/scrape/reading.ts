import { errorMessage, type ScrapeSource } from '@gamenet/schemas'
import type { PageFetcher } from '../fetch/page-fetcher.js'
import type { LogExtents } from '../ports/log.js'
import type { Publication } from '../publish/publish.js'

/** What one run of a source saw. */
export type Reading =
  | {
      readonly ok: true
      /** What the run has not published itself, in the order in which it is to be published. */
      readonly publications: readonly Publication[]
      /** What could not be read; a run with any is `partial`. */
      readonly gaps: readonly string[]
      /** Called when the log has stored all publications. */
      readonly onPublished?: () => void
    }
  /** There was nothing to do: no run, and nothing to publish. */
  | { readonly ok: true; readonly isIdle: true }
  | { readonly ok: false; readonly reason: string }

/** What a source reads by. */
export type Reader = {
  readonly fetcher: PageFetcher
  /**
   * Publishes before the run ends: what one of many pages said does not wait for the others. Rejects with a
   * `LogRefused` when the log does not take it.
   */
  publish(publication: Publication): Promise<void>
  /** Called by sources of many pages whenever they have read one more: how many so far, of how many as far as is known. */
  onProgress?(done: number, total: number): void
}

/** A kind of page that is scraped on its own schedule. Holds what it must remember from run to run. */
export type Source = {
  readonly name: ScrapeSource
  /** Reads upstream once. A page that is not what it must be is a reason, never an exception. */
  read(reader: Reader, signal: AbortSignal): Promise<Reading>
}

/** The reason of an interrupted run's failure. */
export const STOPPING = 'the service is stopping'

/** Unreadable rows that a reason names; more of them say nothing new. */
const GAPS_NAMED_MAX = 20

/** The first of what could not be read, and how many more there are. */
export function namedGaps(gaps: readonly string[]): string {
  const more = gaps.length - GAPS_NAMED_MAX
  return gaps.slice(0, GAPS_NAMED_MAX).join('; ') + (more > 0 ? `; and ${more} more` : '')
}

/** The log was asked where a topic ends, and has not said. */
export class LogUnknown extends Error {
  constructor(topic: string, cause: unknown) {
    super(`where ${topic} ends in the log is not known now: ${errorMessage(cause)}`, {
      cause
    })
  }
}

/** The same log; a failed call of it is distinct from a defect of the caller. */
export function queryLog(log: LogExtents): LogExtents {
  return {
    extents: (topic) =>
      log.extents(topic).catch((error: unknown) => {
        throw new LogUnknown(topic, error)
      })
  }
}

/** The log did not take what a run published. */
export class LogRefused extends Error {
  readonly topic: string

  constructor(topic: string, cause: unknown) {
    super(`the log did not take ${topic}: ${errorMessage(cause)}`, { cause })
    this.topic = topic
  }
}
