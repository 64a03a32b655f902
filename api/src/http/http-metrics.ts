import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { JUDGEMENTS, type SessionMetrics } from '../session/sessions.js'
import { DurationHistogram } from './duration-histogram.js'

/** The origin of an answer to a request for data. */
export type Outcome = 'memory' | 'query' | 'joined' | 'not_modified' | 'stale'

/** The API's metrics. */
export type HttpMetrics = {
  /** A timer of one endpoint's requests. */
  durations(route: string): (method: string, status: number, seconds: number) => void
  answered(outcome: Outcome): void
  queried(operation: string, seconds: number): void
}

/** Registers the API's metrics; the given ones are read when they are collected. */
export function httpMetrics(
  registry: Registry,
  { memoryBytes, repeatedReads }: { memoryBytes(): number; repeatedReads(): number }
): HttpMetrics {
  const duration = new DurationHistogram()
  registry.registerMetric(duration)
  const answered: Record<Outcome, number> = { memory: 0, query: 0, joined: 0, not_modified: 0, stale: 0 }
  new Counter({
    name: 'gamenet_answer_requests_total',
    help: 'Requests for data by origin of the answer.',
    labelNames: ['outcome'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [outcome, count] of Object.entries(answered)) this.inc({ outcome }, count)
    }
  })
  const queries = new Histogram({
    name: 'gamenet_query_duration_seconds',
    help: 'Time to compute an answer from the tables.',
    labelNames: ['operation'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry]
  })
  new Gauge({
    name: 'gamenet_answer_memory_bytes',
    help: 'Bytes of cached answers.',
    registers: [registry],
    collect() {
      this.set(memoryBytes())
    }
  })
  new Counter({
    name: 'gamenet_answer_repeats_total',
    help: 'Answers, files and pages of feeds that were read again because a table was dropped before they ended.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(repeatedReads())
    }
  })
  return {
    durations: (route) => boundDurations(duration, route),
    answered: (outcome) => {
      answered[outcome] += 1
    },
    queried: (operation, seconds) => queries.labels(operation).observe(seconds)
  }
}

/** Registers the metrics of answers as files. */
export function exportMetrics(registry: Registry, exports: { readonly bytes: number; readonly refused: number }): void {
  new Gauge({
    name: 'gamenet_export_bytes',
    help: 'Bytes of answers as files that are being made, sent or kept (EXPORT_BYTES_MAX).',
    registers: [registry],
    collect() {
      this.set(exports.bytes)
    }
  })
  new Counter({
    name: 'gamenet_exports_refused_total',
    help: 'Answers as files that found no room (EXPORT_BYTES_MAX).',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(exports.refused)
    }
  })
}

/** Registers the metrics of sessions. */
export function sessionMetrics(registry: Registry): SessionMetrics {
  const judgements = new Counter({
    name: 'gamenet_session_checks_total',
    help: 'Session keys by outcome of the check: by the auth service (valid, invalid), cached as valid (kept), not checked (unchecked).',
    labelNames: ['judgement'],
    registers: [registry]
  })
  for (const judgement of JUDGEMENTS) judgements.inc({ judgement }, 0)
  return { judged: (judgement) => judgements.inc({ judgement }) }
}

function boundDurations(duration: DurationHistogram, route: string) {
  const observers = new Map<string, Map<number, (seconds: number) => void>>()
  return (method: string, status: number, seconds: number): void => {
    let byStatus = observers.get(method)
    if (byStatus === undefined) {
      byStatus = new Map()
      observers.set(method, byStatus)
    }
    let observe = byStatus.get(status)
    if (observe === undefined) {
      observe = duration.observer({ route, method, status })
      byStatus.set(status, observe)
    }
    observe(seconds)
  }
}
