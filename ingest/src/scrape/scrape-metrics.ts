import { SCRAPE_SOURCES, type ScrapeRan, type ScrapeSource } from '@gamenet/schemas'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/**
 * Registers the Prometheus metrics of scraping. `sources` are the scheduled ones: only they can be late or trigger
 * alerts.
 */
export function createScrapeMetrics(registry: Registry, sources: readonly ScrapeSource[], now: () => number) {
  const registers = [registry]
  const runs = new Counter({
    name: 'gamenet_scrape_runs_total',
    help: 'Runs of a source by outcome',
    labelNames: ['source', 'outcome'],
    registers
  })
  const duration = new Histogram({
    name: 'gamenet_scrape_duration_seconds',
    help: 'How long a run of a source took, waiting for upstream and publishing together',
    labelNames: ['source'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers
  })
  const failing = new Gauge({
    name: 'gamenet_scrape_failing',
    help: 'Alarm: 1 while the last run of a source failed',
    labelNames: ['source'],
    registers
  })
  const publishedEvents = new Counter({
    name: 'gamenet_published_events_total',
    help: 'Events that the log stored, by topic',
    labelNames: ['topic'],
    registers
  })
  const refused = new Counter({
    name: 'gamenet_scrape_log_refusals_total',
    help: 'Runs whose events the log refused',
    labelNames: ['source'],
    registers
  })
  const startedAtMs = now()
  const lastSampleAtMs = new Map<ScrapeSource, number>()
  new Gauge({
    name: 'gamenet_scrape_age_seconds',
    help:
      'Time since the last successful or partial run of a source, since another process was last seen to have its ' +
      'lease, or since the start; for boards see gamenet_boards_overdue',
    labelNames: ['source'],
    registers,
    collect() {
      for (const source of sources) {
        // Boards are visited when they are due; when none is due, there is no run.
        if (source === 'boards') continue
        this.set({ source }, Math.max(0, now() - (lastSampleAtMs.get(source) ?? startedAtMs)) / 1000)
      }
    }
  })
  for (const source of SCRAPE_SOURCES) {
    for (const outcome of ['succeeded', 'partial', 'failed']) runs.inc({ source, outcome }, 0)
    failing.set({ source }, 0)
    refused.inc({ source }, 0)
  }
  return {
    ran(run: ScrapeRan, endedAtMs: number) {
      const { source, outcome } = run
      runs.inc({ source, outcome })
      duration.observe({ source }, run.durationMs / 1000)
      failing.set({ source }, outcome === 'failed' ? 1 : 0)
      if (outcome !== 'failed') lastSampleAtMs.set(source, endedAtMs)
    },
    /** Another process scrapes a source, and has its alarms. */
    ranElsewhere(source: ScrapeSource) {
      failing.set({ source }, 0)
      lastSampleAtMs.set(source, now())
    },
    /** Messages of a topic that the log stored. */
    published: (topic: string, messages: number) => publishedEvents.inc({ topic }, messages),
    /** Counts a run's events that the log refused. */
    refusedByLog: (source: ScrapeSource) => refused.inc({ source })
  }
}
