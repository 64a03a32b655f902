import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { JUDGEMENTS, type SessionMetrics } from '../session/sessions.js'

/** The origin of an answer to a request for data. */
export type Outcome = 'memory' | 'query' | 'joined' | 'not_modified' | 'stale'

/** The API's metrics. */
export type HttpMetrics = {
  /** A timer of one endpoint's requests: bound once, because finding labels costs more than counting. */
  durations(route: string): (method: string, status: number, seconds: number) => void
  readonly answered: Readonly<Record<Outcome, () => void>>
  queried(operation: string, seconds: number): void
}

/** Registers the API's metrics; the given ones are read when they are collected. */
export function httpMetrics(
  registry: Registry,
  { memoryBytes, repeatedReads }: { memoryBytes(): number; repeatedReads(): number }
): HttpMetrics {
  const duration = new Histogram({
    name: 'gamenet_http_request_duration_seconds',
    help: 'Time from a request until its answer is handed to the socket.',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry]
  })
  const requests = new Counter({
    name: 'gamenet_answer_requests_total',
    help: 'Requests for data by origin of the answer.',
    labelNames: ['outcome'],
    registers: [registry]
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
  const counting = (outcome: Outcome) => {
    const child = requests.labels(outcome)
    child.inc(0)
    return () => child.inc()
  }
  return {
    durations: (route) => boundDurations(duration, route),
    answered: {
      memory: counting('memory'),
      query: counting('query'),
      joined: counting('joined'),
      not_modified: counting('not_modified'),
      stale: counting('stale')
    },
    queried: (operation, seconds) => queries.labels(operation).observe(seconds)
  }
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

type Child = ReturnType<Histogram<'route' | 'method' | 'status'>['labels']>

function boundDurations(duration: Histogram<'route' | 'method' | 'status'>, route: string) {
  const children = new Map<string, Map<number, Child>>()
  return (method: string, status: number, seconds: number): void => {
    let byStatus = children.get(method)
    if (byStatus === undefined) {
      byStatus = new Map()
      children.set(method, byStatus)
    }
    let child = byStatus.get(status)
    if (child === undefined) {
      child = duration.labels(route, method, String(status))
      byStatus.set(status, child)
    }
    child.observe(seconds)
  }
}
