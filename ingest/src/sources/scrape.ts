import { instantOf, type ScrapeRan, type ScrapeSource } from '@gamenet/schemas'

const REASON_LENGTH_MAX = 2000
const DURATION_MAX_MS = 86_400_000

/** The outcome of one run of a source. `reason` is absent exactly when it succeeded. */
export type RunOutcome = {
  readonly source: ScrapeSource
  readonly beganAtMs: number
  readonly durationMs: number
  readonly outcome: ScrapeRan['outcome']
  /** Events that the log stored. */
  readonly published: number
  readonly reason: string | undefined
}

/** Returns the event of one run. Its reason is cut to the event's limit. */
export function scrapeRanOf(run: RunOutcome): ScrapeRan {
  return {
    source: run.source,
    observedAt: instantOf(run.beganAtMs),
    durationMs: Math.min(Math.max(Math.round(run.durationMs), 0), DURATION_MAX_MS),
    outcome: run.outcome,
    published: run.published,
    ...(run.reason !== undefined && { reason: shortened(run.reason) })
  }
}

/** Cuts between characters: half of a surrogate pair is invalid text. */
function shortened(reason: string): string {
  if (reason.length <= REASON_LENGTH_MAX) return reason
  const cut = reason.slice(0, REASON_LENGTH_MAX - 1).replace(/[\uD800-\uDBFF]$/, '')
  return `${cut}…`
}
