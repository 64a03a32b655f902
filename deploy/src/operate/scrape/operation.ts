import { SCRAPE_SOURCES, type ScrapeSource } from '@gamenet/schemas'
import { z } from 'zod'
import { UsageError } from '../../config.js'
import { Instant, operation } from '../operation.js'

export const ScrapeReport = z.object({
  source: z.string(),
  observedAt: Instant,
  outcome: z.enum(['succeeded', 'partial', 'failed']),
  durationMs: z.int(),
  published: z.int(),
  reason: z.string().optional()
})
export type ScrapeReport = z.infer<typeof ScrapeReport>

export const ScrapeProgress = z.object({
  source: z.string(),
  /** Pages read. */
  done: z.int(),
  /** Known total of pages. */
  total: z.int()
})
export type ScrapeProgress = z.infer<typeof ScrapeProgress>

/** Runs a source, or all of them, now. Joins a run in progress, and does not end with the client. */
export const scrape = operation({
  name: 'scrape',
  route: 'POST /scrape/:source',
  /** A source, or `all`. */
  input: z.strictObject({ source: z.string() }),
  progress: ScrapeProgress,
  result: z.array(ScrapeReport),
  endsWith: 'ingest',
  run: async ({ ingest }, { source }, { onProgress }) => {
    if (ingest === undefined)
      throw new UsageError('This process does not scrape; ask one that does (gamenet start or ingest).')
    if (source !== 'all' && !isSource(source))
      throw new UsageError(
        `There is no source ${JSON.stringify(source)}; there are ${SCRAPE_SOURCES.join(', ')} and all.`
      )
    return await ingest.runNow(source, onProgress)
  }
})

const isSource = (name: string): name is ScrapeSource => SCRAPE_SOURCES.some((source) => source === name)
