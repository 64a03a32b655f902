import type { ScrapeSource } from '@gamenet/schemas'
import type { PageFetcher } from '../fetch/page-fetcher.js'
import type { Publication } from '../publish.js'

/** What one run of a source saw. */
export type Reading =
  | {
      readonly ok: true
      /** In the order in which they are published. */
      readonly publications: readonly Publication[]
      /** What could not be read; a run with any is `partial`. */
      readonly gaps: readonly string[]
      /** Called when the log has all publications for good. */
      readonly onPublished?: () => void
    }
  | { readonly ok: false; readonly reason: string }

/** A kind of page that is scraped on its own schedule. Holds what it must remember from run to run. */
export type Source = {
  readonly name: ScrapeSource
  /** Reads upstream once. A page that is not what it must be is a reason, never an exception. */
  read(fetcher: PageFetcher, signal: AbortSignal): Promise<Reading>
}
