import { instantOf } from '@gamenet/schemas'
import type { PageFetcher, Validators } from '../fetch/page-fetcher.js'
import type { ParsedPage } from '../pages/parsed-page.js'

/** A page in its current state. */
export type ReadPage<Page> =
  | {
      readonly ok: true
      readonly page: Page
      /** When the answer's headers arrived, to the second: the instant of everything on the page. */
      readonly observedAt: string
    }
  | { readonly ok: false; readonly reason: string }

/**
 * Reads one page repeatedly with conditional requests. "Not modified" is an observation too: the last parsed page is
 * returned with the new instant. Only readable pages are remembered, because "not modified" for a broken page would be
 * useless.
 */
export function createPageReader<Page>(
  path: string,
  parse: (html: string, address: string) => Promise<ParsedPage<Page>>
): (fetcher: PageFetcher, signal: AbortSignal) => Promise<ReadPage<Page>> {
  let last: { page: Page; validators: Validators } | undefined
  return async (fetcher, signal) => {
    const remembered = last
    const fetched = await fetcher.fetch(path, { validators: remembered?.validators ?? {}, signal })
    if (!fetched.ok) return fetched
    const observedAt = instantOf(Math.floor(fetched.answeredAtMs / 1000) * 1000)
    if (!fetched.changed)
      return remembered === undefined
        ? { ok: false, reason: `${path}: not modified, but it was never read` }
        : { ok: true, page: remembered.page, observedAt }
    const parsed = await parse(fetched.html, fetched.address)
    last = parsed.ok ? { page: parsed.page, validators: fetched.validators } : undefined
    return parsed.ok
      ? { ok: true, page: parsed.page, observedAt }
      : { ok: false, reason: `${fetched.address}: ${parsed.reason}` }
  }
}
