import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { topic } from '../wire/topic.js'

/** The sources, each with its own schedule: three single pages, and two sets of many pages. */
export const SCRAPE_SOURCES = ['network', 'games', 'matches', 'boards', 'players'] as const
export type ScrapeSource = (typeof SCRAPE_SOURCES)[number]

/** One run of a source: when it began, how long it took, its result. */
export const ScrapeRan = z.object({
  source: z.enum(SCRAPE_SOURCES),
  /** When the run began. */
  observedAt: Instant,
  durationMs: z.int().min(0).max(86_400_000),
  /**
   * `partial`: everything was read except the rows or pages named in `reason`. `failed`: nothing could be read, or the
   * result could not be published.
   */
  outcome: z.enum(['succeeded', 'partial', 'failed']),
  /** Number of published events, without this one. */
  published: z.int().min(0).max(10_000_000),
  /** Why it failed, or which rows could not be read; absent when it succeeded. */
  reason: z.string().min(1).max(2000).optional()
})
export type ScrapeRan = z.infer<typeof ScrapeRan>

export const scrapeTopic = topic({
  name: 'scrape',
  event: ScrapeRan,
  key: (event) => event.source,
  instant: (event) => event.observedAt
})
