import { type ScrapeRan, scrapeTopic } from '@gamenet/schemas'
import type { PageFetcher } from '../fetch/page-fetcher.js'
import type { Log } from '../log.js'
import { publish } from '../publish.js'
import { scrapeRanOf } from '../sources/scrape.js'
import type { Reading, Source } from './reading.js'

/** Where structured lines of the program's log go; pino and Fastify's logger are such. */
export type Logger = {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** What a run needs of the world. */
export type RunNeeds = {
  readonly log: Log
  readonly fetcher: PageFetcher
  readonly logger: Logger
  readonly now: () => number
  /** Called when the log did not take a run's events. */
  readonly onLogRefusal: () => void
}

/** Unreadable rows that a reason names; more of them say nothing new. */
const GAPS_NAMED_MAX = 20

/**
 * One run: read, publish, say how it went. The `scrape` event comes last, so whoever sees it finds the events of
 * its run in the log. A crash before it leaves samples without a scrape event: true samples all the same, and the
 * next run speaks for the source. A run that was cut off because the service stops says nothing about upstream and
 * publishes nothing. Never rejects: a log that takes nothing fails the run, and the next one goes on.
 */
export async function runSource(needs: RunNeeds, source: Source, signal: AbortSignal): Promise<ScrapeRan> {
  const provenance = { source: `/scrape/${source.name}` }
  const beganAtMs = needs.now()
  const began = performance.now()
  const result = await readAndPublish(needs, source, signal)
  const run = scrapeRanOf({ source: source.name, beganAtMs, durationMs: performance.now() - began, ...result })
  if (signal.aborted && run.outcome === 'failed') return run
  try {
    await publish(needs.log, scrapeTopic, [run], provenance)
  } catch (error) {
    needs.onLogRefusal()
    needs.logger.error({ err: error, run }, 'the log did not take the scrape event')
  }
  return run
}

type Result = Pick<Parameters<typeof scrapeRanOf>[0], 'outcome' | 'published' | 'reason'>

async function readAndPublish(needs: RunNeeds, source: Source, signal: AbortSignal): Promise<Result> {
  let reading: Reading
  try {
    reading = await source.read(needs.fetcher, signal)
  } catch (error) {
    needs.logger.error({ err: error, source: source.name }, 'a source threw: this is a defect')
    return { outcome: 'failed', published: 0, reason: `the scraper itself failed: ${messageOf(error)}` }
  }
  if (!reading.ok) return { outcome: 'failed', published: 0, reason: reading.reason }
  let published = 0
  for (const publication of reading.publications) {
    try {
      await publication.publish(needs.log, { source: `/scrape/${source.name}` })
    } catch (error) {
      needs.onLogRefusal()
      needs.logger.error({ err: error, source: source.name, topic: publication.topic }, 'the log did not take events')
      return { outcome: 'failed', published, reason: `the log did not take ${publication.topic}: ${messageOf(error)}` }
    }
    published += publication.count
  }
  reading.onPublished?.()
  return reading.gaps.length === 0
    ? { outcome: 'succeeded', published, reason: undefined }
    : { outcome: 'partial', published, reason: namedGaps(reading.gaps) }
}

function namedGaps(gaps: readonly string[]): string {
  const more = gaps.length - GAPS_NAMED_MAX
  return gaps.slice(0, GAPS_NAMED_MAX).join('; ') + (more > 0 ? `; and ${more} more` : '')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
