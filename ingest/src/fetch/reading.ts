import { errorMessage, Failure, type LogExtents, type ScrapeSource } from '@gamenet/schemas'
import type { Publication } from '../publish/publish.js'
import type { PageFetcher } from './page-fetcher.js'

/** The result of one run of a source. */
export type Reading =
  | {
      readonly ok: true
      /** Events that the run has not published itself, in publishing order. */
      readonly publications: readonly Publication[]
      /** What could not be read; a run with gaps is `partial`. */
      readonly gaps: readonly string[]
      /** Called when the log has stored all publications. */
      readonly onPublished?: () => void
    }
  /** There was nothing to do: no run, nothing to publish. */
  | { readonly ok: true; readonly isIdle: true }
  | { readonly ok: false; readonly reason: string }

/** The dependencies of a source's read. */
export type Reader = {
  readonly fetcher: PageFetcher
  /**
   * Publishes before the run ends, so that the first of many pages does not wait for the last. Rejects with a
   * `log_refused` if the log refuses it.
   */
  publish(publication: Publication): Promise<void>
  /** Called by sources of many pages after each page, with the number so far and the known total. */
  onProgress?(done: number, total: number): void
}

/** A kind of page that is scraped on its own schedule. Holds the state between runs. */
export type Source = {
  readonly name: ScrapeSource
  /** Reads upstream once. An unexpected page results in a reason, never in an exception. */
  read(reader: Reader, signal: AbortSignal): Promise<Reading>
}

/** The reason of an interrupted run's failure. */
export const STOPPING = 'the service is stopping'

/** Maximum number of unreadable rows in a reason; more add nothing. */
const GAPS_NAMED_MAX = 20

/** Returns the first gaps and the number of the others. */
export function namedGaps(gaps: readonly string[]): string {
  const more = gaps.length - GAPS_NAMED_MAX
  return gaps.slice(0, GAPS_NAMED_MAX).join('; ') + (more > 0 ? `; and ${more} more` : '')
}

/** Wraps a log so that its failed calls are distinct from defects of the caller. */
export function queryLog(log: LogExtents): LogExtents {
  return {
    extents: (topic) =>
      log.extents(topic).catch((error: unknown) => {
        const message = `the end of ${topic} in the log is unknown: ${errorMessage(error)}`
        throw new Failure('log_unknown', message, { cause: error })
      })
  }
}
