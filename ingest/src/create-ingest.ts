import {
  type LogExtents,
  type Logger,
  type Provenance,
  SCRAPE_SOURCES,
  type ScrapeRan,
  type ScrapeSource,
  type Topic,
  type WriteSide,
  withTimeout
} from '@gamenet/schemas'
import type { Registry } from 'prom-client'
import { createEvaluator, type EvaluatorOptions } from './achievements/create-evaluator.js'
import { boardLeases } from './boards/board-leases.js'
import { createBoardMetrics } from './boards/board-metrics.js'
import { createPageFetcher } from './fetch/page-fetcher.js'
import { queryLog, type Source } from './fetch/reading.js'
import { createPageParsing, type PageParsing } from './pages/page-parsing.js'
import type { People } from './people/people.js'
import type { Log } from './ports/log.js'
import type { TableAccess } from './ports/served-tables.js'
import { countingLog, publish } from './publish/publish.js'
import { type BoardsSource, boardsSource } from './scrape/boards.js'
import { gamesSource } from './scrape/games.js'
import { matchesSource } from './scrape/matches.js'
import { networkSource } from './scrape/network.js'
import { playersSource } from './scrape/players.js'
import { runSource } from './scrape/run-source.js'
import { partRunner, type Runner, singleRunner } from './scrape/runner.js'
import { schedule } from './scrape/schedule.js'
import { scrapeLeases } from './scrape/scrape-leases.js'
import { createScrapeMetrics } from './scrape/scrape-metrics.js'
import { createTitleRoster } from './sources/title-status.js'

/** A source (key) reads what others (value) published, and waits for their runs in progress. */
const READS_AFTER: Readonly<Record<ScrapeSource, readonly ScrapeSource[]>> = {
  network: [],
  games: [],
  matches: ['network'],
  boards: ['network', 'games'],
  players: []
}

/** A week. Timers of Node end at 24 days. */
const PERIOD_MAX_SECONDS = 604_800
/** Interval between two checks for due boards. */
const BOARDS_LOOK_MS = 5_000
/** Shortest period of a board when boards are visited only on request. */
const BOARD_PERIOD_S = 300
/** Period that sightings report when the players page is read only on request. */
const PLAYERS_PERIOD_S = 60
/** Longer than any batch of visits takes. The boards of a killed process stay leased for this long. */
const BOARD_LEASE_S = 300
/** Longest wait for a running append when the service stops. */
const STOP_TIMEOUT_MS = 5_000

/** The tables are those with the published events. */
export type IngestOptions = TableAccess & {
  readonly log: Log & LogExtents
  /** Opens the write side with its newest schema. Called before the first visit of a board. */
  readonly writes: () => Promise<WriteSide>
  /** Seals events about people. */
  readonly people: People
  /** Base address of the network's pages; the home page is this address exactly. */
  readonly upstreamUrl: string
  /** Whole seconds between runs of each source, or between visits of one board. 0: only on request. */
  readonly periods: Readonly<Record<ScrapeSource, number>>
  /** Above 0. One limit for all sources, because they request one host. */
  readonly requestsPerSecond: number
  /** When given, users' achievements are evaluated; an interval here overrides the default. */
  readonly achievements?: Pick<EvaluatorOptions, 'pollMs' | 'late' | 'isHistoryMissing'>
  /** The client's name and contact: `gamenet-stats/<version> (+<address>)`. */
  readonly userAgent: string
  /** Where metrics are registered. A registry takes one ingest. */
  readonly registry: Registry
  readonly logger: Logger
  readonly now?: () => number
}

/** The state of a source. */
export type SourceStatus = {
  readonly source: ScrapeSource
  readonly periodSeconds: number
  /** The last run of this process; null before the first one has ended. */
  readonly lastRun: ScrapeRan | null
}

/** The number of pages that a run has read, and the known total. */
export type ScrapeProgress = { readonly source: ScrapeSource; readonly done: number; readonly total: number }

export type Ingest = {
  /** Starts each source with a period: a run now, then one per period. */
  start(): void
  /**
   * Runs a source, or joins its current run; `all` runs every source. Runs fail after `stop`. `onProgress` is called
   * per page of sources with many pages.
   */
  runNow(source: ScrapeSource | 'all', onProgress?: (progress: ScrapeProgress) => void): Promise<ScrapeRan[]>
  status(): SourceStatus[]
  /** Publishes events from other components, counted in the same metrics. */
  publish<Event>(topic: Topic<Event>, events: readonly Event[], provenance: Provenance): Promise<void>
  /** Starts no more runs, aborts fetches, waits at most 5 s for appends, closes connections. */
  stop(): Promise<void>
}

/** Creates the scrapers. Nothing runs before `start` or `runNow`. Throws on invalid options. */
export function createIngest(options: IngestOptions): Ingest {
  for (const source of SCRAPE_SOURCES) checkPeriod(source, options.periods[source])
  const { logger, people, registry, now = Date.now } = options
  const scheduled = SCRAPE_SOURCES.filter((source) => options.periods[source] > 0)
  const fetcher = createPageFetcher({ ...options, now })
  const parsing = createPageParsing()
  const metrics = createScrapeMetrics(registry, scheduled, now)
  const log = countingLog(options.log, metrics.published)
  const stopping = new AbortController()
  const leases = scrapeLeases(options)
  const watchers = new Set<(progress: ScrapeProgress) => void>()
  const runOne = async (source: Source) => {
    const onProgress = (done: number, total: number) => {
      for (const watch of watchers) watch({ source: source.name, done, total })
    }
    const needs = {
      log,
      people,
      fetcher,
      logger,
      now,
      onProgress,
      onLogRefusal: () => metrics.refusedByLog(source.name)
    }
    await Promise.all(READS_AFTER[source.name].map((name) => runners[name].idle()))
    const ran = await runSource(needs, source, stopping.signal)
    // A run that `stop` interrupts before it has read anything is not a failure.
    if (ran === undefined || (stopping.signal.aborted && ran.outcome === 'failed')) return ran
    metrics.ran(ran, now())
    report(logger, ran, stopping.signal)
    return ran
  }
  const runners = createRunners(createSources(options, parsing), runOne, stopping.signal)
  const schedules = new Map<ScrapeSource, () => void>()
  const counted = { append: log.append, extents: (topic: string) => options.log.extents(topic) }
  const evaluator = options.achievements && createEvaluator({ ...options, ...options.achievements, log: counted, now })
  return {
    start() {
      if (stopping.signal.aborted) return
      evaluator?.start()
      if (schedules.size > 0) return
      for (const name of scheduled) {
        const periodMs = Math.min(
          options.periods[name] * 1000,
          name === 'boards' ? BOARDS_LOOK_MS : Number.POSITIVE_INFINITY
        )
        schedules.set(
          name,
          schedule(periodMs, async () => {
            if (await leases.isOwn(name)) await runners[name].runDue()
            else metrics.ranElsewhere(name)
          })
        )
      }
    },
    async runNow(source, onProgress = () => {}) {
      const names = source === 'all' ? SCRAPE_SOURCES : [source]
      const watch = (progress: ScrapeProgress) => {
        if (names.includes(progress.source)) onProgress(progress)
      }
      watchers.add(watch)
      try {
        return await Promise.all(names.map((name) => runners[name].runAll()))
      } finally {
        watchers.delete(watch)
      }
    },
    status: () =>
      SCRAPE_SOURCES.map((source) => ({
        source,
        periodSeconds: options.periods[source],
        lastRun: runners[source].last() ?? null
      })),
    publish: (topic, events, provenance) => publish(log, topic, events, provenance, people),
    async stop() {
      for (const stop of schedules.values()) stop()
      stopping.abort()
      const ends = [evaluator?.stop(), ...SCRAPE_SOURCES.map((name) => runners[name].idle())]
      const ended = await endedInTime([...ends, leases.release()])
      if (!ended) logger.warn({ waitedMs: STOP_TIMEOUT_MS }, 'a scrape still waits for the log; stopping without it')
      await Promise.all([fetcher.close(), parsing.close()])
    }
  }
}

type Sources = Readonly<Record<Exclude<ScrapeSource, 'boards'>, Source>> & { readonly boards: BoardsSource }

function createSources(options: IngestOptions, parsing: PageParsing): Sources {
  const { tables, serving, positions, registry } = options
  const access = { tables, serving, positions }
  const log = queryLog(options.log)
  const shortestS = options.periods.boards === 0 ? BOARD_PERIOD_S : options.periods.boards
  const roster = createTitleRoster(access)
  const periodSeconds = options.periods.players === 0 ? PLAYERS_PERIOD_S : options.periods.players
  return {
    network: networkSource(parsing, roster),
    games: gamesSource(parsing, roster),
    matches: matchesSource({ ...access, parsing, log }),
    players: playersSource({ ...access, parsing, log, periodSeconds }),
    boards: boardsSource({
      ...access,
      parsing,
      log,
      shortestS,
      random: Math.random,
      metrics: createBoardMetrics(registry),
      leases: async () => boardLeases(await options.writes(), { shortestS, leaseS: BOARD_LEASE_S })
    })
  }
}

function createRunners(
  sources: Sources,
  runOne: (source: Source) => Promise<ScrapeRan | undefined>,
  stopping: AbortSignal
): Readonly<Record<ScrapeSource, Runner>> {
  const whole = (source: Source) =>
    singleRunner(async () => {
      const ran = await runOne(source)
      if (ran === undefined) throw new Error(`${source.name} had nothing to read: this is a defect`)
      return ran
    })
  return {
    network: whole(sources.network),
    games: whole(sources.games),
    matches: whole(sources.matches),
    players: whole(sources.players),
    boards: partRunner({
      runDue: () => runOne(sources.boards),
      hasMore: () => sources.boards.hasMore(),
      everything: () => {
        const everything = sources.boards.everything()
        return () => runOne(everything)
      },
      isStopping: () => stopping.aborted
    })
  }
}

function checkPeriod(source: ScrapeSource, seconds: number): void {
  if (Number.isInteger(seconds) && seconds >= 0 && seconds <= PERIOD_MAX_SECONDS) return
  throw new RangeError(
    `The period of ${source} must be a whole number of seconds from 0 (only on request) to ${PERIOD_MAX_SECONDS}; ` +
      `got ${seconds}.`
  )
}

function report(logger: Logger, run: ScrapeRan, stopping: AbortSignal): void {
  if (run.outcome === 'succeeded') logger.info({ run }, `scraped ${run.source}`)
  else if (stopping.aborted) logger.info({ run }, `scraped a part of ${run.source}`)
  else logger.warn({ run }, `scrape of ${run.source} ${run.outcome}`)
}

async function endedInTime(runs: readonly unknown[]): Promise<boolean> {
  const ended = Promise.allSettled(runs).then(() => true)
  return await withTimeout(ended, STOP_TIMEOUT_MS, () => false)
}
