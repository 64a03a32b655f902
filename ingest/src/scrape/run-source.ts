import { errorMessage, Failure, isFailure, type Logger, Refusal, type ScrapeRan, scrapeTopic } from '@gamenet/schemas'
import type { PageFetcher } from '../fetch/page-fetcher.js'
import { namedGaps, type Source, STOPPING } from '../fetch/reading.js'
import type { People } from '../people/people.js'
import type { Log } from '../ports/log.js'
import { type Publication, publish } from '../publish/publish.js'
import { scrapeRanOf } from '../sources/scrape.js'

/** Dependencies of a run. */
export type RunNeeds = {
  readonly log: Log
  /** Seals events about people. */
  readonly people: People
  readonly fetcher: PageFetcher
  readonly logger: Logger
  readonly now: () => number
  /** Called during the run of a source of many pages. */
  readonly onProgress?: (done: number, total: number) => void
  /** Called when the log refused a run's events. */
  readonly onLogRefusal: () => void
}

/**
 * Runs a source once: read, publish, report. The `scrape` event comes last, so its readers find the events of its run
 * in the log. A crash before it leaves valid samples without a scrape event; the next run reports for the source. A run
 * that `stop` interrupts is partial if it has published or read something; otherwise it publishes nothing. Never
 * rejects: an unavailable log fails the run, and the next one continues.
 * @returns undefined when there was nothing to do
 */
export async function runSource(needs: RunNeeds, source: Source, signal: AbortSignal): Promise<ScrapeRan | undefined> {
  const beganAtMs = needs.now()
  const began = performance.now()
  const result = await readAndPublish(needs, source, signal)
  if (result === undefined) return undefined
  const run = scrapeRanOf({ source: source.name, beganAtMs, durationMs: performance.now() - began, ...result })
  if (signal.aborted && run.outcome === 'failed') return run
  try {
    await publish(needs.log, scrapeTopic, [run], { source: `/scrape/${source.name}` })
  } catch (error) {
    needs.onLogRefusal()
    needs.logger.error({ err: error, run }, 'the log refused the scrape event')
  }
  return run
}

type Result = Pick<Parameters<typeof scrapeRanOf>[0], 'outcome' | 'published' | 'reason'>

async function readAndPublish(needs: RunNeeds, source: Source, signal: AbortSignal): Promise<Result | undefined> {
  if (signal.aborted) return { outcome: 'failed', published: 0, reason: STOPPING }
  let published = 0
  const publishOne = async (publication: Publication) => {
    try {
      await publication.publish(needs.log, { source: `/scrape/${source.name}` }, needs.people)
    } catch (error) {
      needs.onLogRefusal()
      const message = `the log refused ${publication.topic}: ${errorMessage(error)}`
      throw new Failure('log_refused', message, { cause: error })
    }
    published += publication.count
  }
  try {
    const { fetcher, onProgress } = needs
    const reader = { fetcher, publish: publishOne, ...(onProgress !== undefined && { onProgress }) }
    const reading = await source.read(reader, signal)
    if (!reading.ok)
      return signal.aborted ? interrupted(published) : { outcome: 'failed', published, reason: reading.reason }
    if ('isIdle' in reading) return undefined
    for (const publication of reading.publications) await publishOne(publication)
    reading.onPublished?.()
    return reading.gaps.length === 0
      ? { outcome: 'succeeded', published, reason: undefined }
      : { outcome: 'partial', published, reason: namedGaps(reading.gaps) }
  } catch (error) {
    return signal.aborted
      ? interrupted(published)
      : { outcome: 'failed', published, reason: reasonOf(needs, source, error) }
  }
}

function interrupted(published: number): Result {
  return { outcome: published > 0 ? 'partial' : 'failed', published, reason: STOPPING }
}

function reasonOf({ logger }: RunNeeds, { name: source }: Source, error: unknown): string {
  if (isFailure(error, 'log_refused')) {
    logger.error({ err: error.cause, source, reason: error.message }, 'the log refused events')
    return error.message
  }
  if (error instanceof Refusal) {
    logger.warn({ err: error, source }, 'an engine is unavailable')
    return `earlier events cannot be looked up: ${error.message}`
  }
  if (isFailure(error, 'log_unknown')) {
    logger.warn({ err: error.cause, source }, 'the end of the log is unknown')
    return `earlier publications cannot be looked up: ${error.message}`
  }
  logger.error({ err: error, source }, 'a source threw: this is a defect')
  return `the scraper itself failed: ${errorMessage(error)}`
}
