import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { JUDGEMENTS, type SessionMetrics } from '../session/sessions.js'

/** The origin of an answer to a request for data. */
export type Outcome = (typeof OUTCOMES)[number]
const OUTCOMES = ['memory', 'query', 'joined', 'not_modified', 'stale'] as const

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
  const durations = new Histogram({
    name: 'gamenet_http_request_duration_seconds',
    help: 'Time from a request until its answer is handed to the socket; 0 for a ready answer.',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry]
  })
  const answered = new Counter({
    name: 'gamenet_answer_requests_total',
    help: 'Requests for data by origin of the answer.',
    labelNames: ['outcome'],
    registers: [registry]
  })
  for (const outcome of OUTCOMES) answered.inc({ outcome }, 0)
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
    durations: (route) => (method, status, seconds) => durations.observe({ route, method, status }, seconds),
    answered: (outcome) => answered.inc({ outcome }),
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
    help:
      'Session keys by outcome of the check: by the auth service (valid, invalid), cached as valid (kept), not ' +
      'checked (unchecked).',
    labelNames: ['judgement'],
    registers: [registry]
  })
  for (const judgement of JUDGEMENTS) judgements.inc({ judgement }, 0)
  return { judged: (judgement) => judgements.inc({ judgement }) }
}
