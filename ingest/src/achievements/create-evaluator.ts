import { randomUUID } from 'node:crypto'
import type { LogExtents, Logger, WriteSide } from '@gamenet/schemas'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { People } from '../people/people.js'
import type { Log } from '../ports/log.js'
import { servedTables, type TableAccess } from '../ports/served-tables.js'
import { schedule } from '../scrape/schedule.js'
import { evaluateOnce, type LateEvents } from './evaluate.js'
import { EVALUATED_TOPICS, tablePositions } from './evaluated-topics.js'

/** Interval between two checks for new table data. One check costs 0.1 % of a core. */
const POLL_MS = 5000
const DAY_MS = 86_400_000

export type EvaluatorOptions = TableAccess & {
  /** Opens the write side with its newest schema. Called when the tables have new data. */
  readonly writes: () => Promise<WriteSide>
  readonly log: Log & LogExtents
  readonly people: People
  /** Default: no late events. */
  readonly late?: LateEvents | undefined
  /** Returns whether a history of users is being loaded: nothing is evaluated then. Default: never. */
  readonly isHistoryMissing?: (() => boolean) | undefined
  readonly registry: Registry
  readonly logger: Logger
  readonly now: () => number
  /** Default: {@link POLL_MS}. */
  readonly pollMs?: number
}

export type Evaluator = {
  start(): void
  /** Aborts the current evaluation. Nothing is lost. */
  stop(): Promise<void>
}

/** Evaluates achievements whenever the tables have new data, until it is stopped. Failures are retried. */
export function createEvaluator(options: EvaluatorOptions): Evaluator {
  const { logger, now } = options
  const metrics = evaluatorMetrics(options.registry)
  const stopping = new AbortController()
  const { signal } = stopping
  const holder = randomUUID()
  let running: Promise<void> = Promise.resolve()
  let stopPolling: (() => void) | undefined
  /** Table positions at which everything was evaluated. */
  let evaluatedAt = ''

  const run = async (): Promise<void> => {
    const beganMs = now()
    if (options.isHistoryMissing?.() === true) return
    const { byTopic } = await tablePositions(await servedTables(options))
    const late = await options.late?.pending(EVALUATED_TOPICS)
    const standsAt = JSON.stringify([byTopic, Math.floor(beganMs / DAY_MS), late])
    if (standsAt === evaluatedAt) return metrics.evaluated.set(beganMs / 1000)
    const needs = { ...options, writes: await options.writes(), holder, signal }
    for (;;) {
      const evaluation = await evaluateOnce(needs)
      if ('users' in evaluation) {
        metrics.users.inc(evaluation.users)
        metrics.unlocked.inc(evaluation.unlocks)
      }
      if (evaluation.outcome === 'full') continue
      if (evaluation.outcome === 'done' || evaluation.outcome === 'idle') {
        evaluatedAt = standsAt
        metrics.evaluated.set(beganMs / 1000)
      }
      return
    }
  }
  const runAndReport = async (): Promise<void> => {
    try {
      await run()
      metrics.failing.set(0)
    } catch (error) {
      if (signal.aborted) return
      metrics.failing.set(1)
      logger.warn({ err: error }, 'achievements cannot be evaluated; retrying')
    }
  }
  return {
    start() {
      if (signal.aborted) return
      stopPolling ??= schedule(options.pollMs ?? POLL_MS, () => {
        running = runAndReport()
        return running
      })
    },
    async stop() {
      stopPolling?.()
      stopping.abort(new Error('the service stops'))
      await running
    }
  }
}

function evaluatorMetrics(registry: Registry) {
  const registers = [registry]
  return {
    users: new Counter({
      name: 'gamenet_achievement_users_evaluated_total',
      help: 'Users evaluated because events touched them',
      registers
    }),
    unlocked: new Counter({
      name: 'gamenet_achievements_unlocked_total',
      help: 'Unlocks that this process published',
      registers
    }),
    evaluated: new Gauge({
      name: 'gamenet_achievements_evaluated_timestamp_seconds',
      help: 'When this process last had evaluated all events in the tables; 0 before',
      registers
    }),
    failing: new Gauge({
      name: 'gamenet_achievement_evaluation_failing',
      help: 'Alarm: 1 while the last evaluation failed, so that no achievement is unlocked',
      registers
    })
  }
}
