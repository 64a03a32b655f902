import { z } from 'zod'
import { Instant } from './instant.js'
import { topic } from './topic.js'

/** The kinds of page that are scraped, each on its own schedule. */
export const SCRAPE_SOURCES = ['network', 'games'] as const
export type ScrapeSource = (typeof SCRAPE_SOURCES)[number]

/** One run of a source: when it began, how long it took, what came of it. */
export const ScrapeRan = z.object({
  source: z.enum(SCRAPE_SOURCES),
  /** When the run began. */
  observedAt: Instant,
  durationMs: z.int().min(0).max(86_400_000),
  /** `partial`: the page could be read but for the rows named in `reason`. `failed`: no sample was published. */
  outcome: z.enum(['succeeded', 'partial', 'failed']),
  /** Events published besides this one. */
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
