import { type Provenance, SCRAPE_SOURCES, type ScrapeRan, type ScrapeSource, type Topic } from '@gamenet/schemas'
import type { Registry } from 'prom-client'
import { createPageFetcher } from './fetch/page-fetcher.js'
import type { Log } from './log.js'
import { createPageParsing, type PageParsing } from './pages/page-parsing.js'
import { countingLog, publish } from './publish.js'
import { gamesSource } from './scrape/games.js'
import { networkSource } from './scrape/network.js'
import type { Source } from './scrape/reading.js'
import { type Logger, runSource } from './scrape/run-source.js'
import { type Schedule, schedule } from './scrape/schedule.js'
import { createScrapeMetrics } from './scrape/scrape-metrics.js'

/** How each source is made; a new source is one more line. */
const SOURCES: Readonly<Record<ScrapeSource, (parsing: PageParsing) => Source>> = {
  network: networkSource,
  games: gamesSource
}

/** A day and a half would do; a week leaves room. Timers of Node end at 24 days. */
const PERIOD_MAX_SECONDS = 604_800
/** Longest wait for an append that is under way when the service stops. */
const STOP_TIMEOUT_MS = 5_000

export type IngestOptions = {
  readonly log: Log
  /** Base address of the network's pages; the home page is this address exactly. */
  readonly upstreamUrl: string
  /** Seconds between runs of each source, whole; 0: only when asked. */
  readonly periods: Readonly<Record<ScrapeSource, number>>
  /** Above 0; for all sources together, since they ask one host. */
  readonly requestsPerSecond: number
  /** Who asks, and where to complain: `gamenet-stats/<version> (+<address>)`. */
  readonly userAgent: string
  /** Where metrics are registered; one ingest a registry. */
  readonly registry: Registry
  readonly logger: Logger
  readonly now?: () => number
  /** For one attempt to get a page, milliseconds (20,000). */
  readonly attemptTimeoutMs?: number
}

/** How a source stands. Instants are milliseconds since 1970. */
export type SourceStatus = {
  readonly source: ScrapeSource
  readonly periodSeconds: number
  readonly running: boolean
  /** The last run of this process; null before the first has ended. */
  readonly lastRun: ScrapeRan | null
  /** When the next run is planned; null when running, stopped, or only run when asked. */
  readonly nextRunAtMs: number | null
}

export type Ingest = {
  /** Begins to run each source with a period: once now, then by its period. */
  start(): void
  /** Runs a source, or joins its run in progress; `all` runs every source. After `stop` the runs fail. */
  runNow(source: ScrapeSource | 'all'): Promise<ScrapeRan[]>
  status(): SourceStatus[]
  /** Publishes events that come from elsewhere, counted in the same metrics. */
  publish<Event>(topic: Topic<Event>, events: readonly Event[], provenance: Provenance): Promise<void>
  /** Begins no more runs, aborts what is being fetched, waits (5 s at most) for appends, closes connections. */
  stop(): Promise<void>
}

/** Puts the scrapers together. Nothing runs before `start` or `runNow`. Throws on options that cannot work. */
export function createIngest(options: IngestOptions): Ingest {
  for (const source of SCRAPE_SOURCES) checkPeriod(source, options.periods[source])
  const { logger, registry, now = Date.now } = options
  const scheduled = SCRAPE_SOURCES.filter((source) => options.periods[source] > 0)
  const fetcher = createPageFetcher({ ...options, now })
  const parsing = createPageParsing()
  const metrics = createScrapeMetrics(registry, scheduled, now)
  const log = countingLog(options.log, metrics.published)
  const stopping = new AbortController()
  const runners = new Map(
    SCRAPE_SOURCES.map((name) => {
      const needs = { log, fetcher, logger, now, onLogRefusal: () => metrics.refusedByLog(name) }
      const source = SOURCES[name](parsing)
      const run = async () => {
        const ran = await runSource(needs, source, stopping.signal)
        metrics.ran(ran, now())
        report(logger, ran)
        return ran
      }
      return [name, createRunner(run)] as const
    })
  )
  const schedules = new Map<ScrapeSource, Schedule>()
  const runNow = async (name: ScrapeSource) => (await runners.get(name)?.run()) ?? []
  return {
    start() {
      if (schedules.size > 0 || stopping.signal.aborted) return
      for (const name of scheduled) {
        schedules.set(
          name,
          schedule(options.periods[name] * 1000, () => runNow(name))
        )
      }
    },
    runNow: async (source) => (await Promise.all((source === 'all' ? SCRAPE_SOURCES : [source]).map(runNow))).flat(),
    status: () =>
      SCRAPE_SOURCES.map((source) => ({
        source,
        periodSeconds: options.periods[source],
        running: runners.get(source)?.running() ?? false,
        lastRun: runners.get(source)?.last() ?? null,
        nextRunAtMs: schedules.get(source)?.nextAtMs() ?? null
      })),
    publish: (topic, events, provenance) => publish(log, topic, events, provenance),
    async stop() {
      for (const planned of schedules.values()) planned.stop()
      stopping.abort()
      const ended = await endedInTime([...runners.values()].map((runner) => runner.idle()))
      if (!ended) logger.warn({ waitedMs: STOP_TIMEOUT_MS }, 'a scrape still waits for the log; stopping without it')
      await Promise.all([fetcher.close(), parsing.close()])
    }
  }
}

/** One source's runs: never two at once, the last one remembered. */
type Runner = {
  run(): Promise<ScrapeRan[]>
  running(): boolean
  last(): ScrapeRan | undefined
  /** Resolves when no run is under way. */
  idle(): Promise<unknown>
}

function createRunner(run: () => Promise<ScrapeRan>): Runner {
  let current: Promise<ScrapeRan> | undefined
  let last: ScrapeRan | undefined
  return {
    async run() {
      current ??= run().finally(() => {
        current = undefined
      })
      last = await current
      return [last]
    },
    running: () => current !== undefined,
    last: () => last,
    idle: () => current ?? Promise.resolve()
  }
}

function checkPeriod(source: ScrapeSource, seconds: number): void {
  if (Number.isInteger(seconds) && seconds >= 0 && seconds <= PERIOD_MAX_SECONDS) return
  throw new RangeError(
    `The period of ${source} must be a whole number of seconds from 0 (only when asked) to ${PERIOD_MAX_SECONDS}; got ${seconds}.`
  )
}

function report(logger: Logger, run: ScrapeRan): void {
  if (run.outcome === 'succeeded') logger.info({ run }, `scraped ${run.source}`)
  else logger.warn({ run }, `scrape of ${run.source} ${run.outcome}: ${run.reason ?? ''}`)
}

async function endedInTime(runs: readonly Promise<unknown>[]): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), STOP_TIMEOUT_MS)
  })
  try {
    return await Promise.race([Promise.allSettled(runs).then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
