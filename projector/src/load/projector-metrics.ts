import { type StalledPartition, topics } from '@gamenet/schemas'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** The projector's metrics. Bucket bounds in seconds, from a small step to a step over a whole backlog. */
export type Metrics = ReturnType<typeof projectorMetrics>

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]

/** Facts read from log and tables when metrics are collected: the lag of the event tables, and stalled partitions. */
export type LogState = {
  readonly lag: ReadonlyMap<string, number>
  /** Absent if the log is not observed. */
  readonly lagSeconds?: LagSeconds
  readonly stalled: readonly StalledPartition[]
}

/** The age of the oldest event that is not loaded, by topic, and not projected, by projection. */
export type LagSeconds = {
  readonly topics: ReadonlyMap<string, number>
  readonly projections: ReadonlyMap<string, number>
}

type MetricSources = {
  readonly logState: () => Promise<LogState>
  /** Pending dead letters by topic. */
  readonly deadLetters: () => Promise<ReadonlyMap<string, number>>
}

/** Registers the projector's metrics. */
export function projectorMetrics(registry: Registry, sources: MetricSources) {
  const registers = [registry]
  const ask = joined(sources.logState)
  addLagSeconds(registers, ask)
  return {
    loaderLag: new Gauge({
      name: 'gamenet_loader_lag_events',
      help: 'Events in the log that are not in the event tables yet',
      labelNames: ['topic'],
      registers,
      async collect() {
        for (const [topic, events] of (await ask()).lag) this.set({ topic }, events)
      }
    }),
    stalledPartitions: new Gauge({
      name: 'gamenet_loader_stalled_partitions',
      help: 'Alarm: partitions that are stalled because the log lacks the events to be loaded next',
      labelNames: ['topic'],
      registers,
      async collect() {
        const { stalled } = await ask()
        for (const { name: topic } of topics)
          this.set({ topic }, stalled.filter((stall) => stall.topic === topic).length)
      }
    }),
    missingEvents: new Gauge({
      name: 'gamenet_loader_missing_events',
      help: 'Alarm: offsets that retention deleted before they were loaded',
      labelNames: ['topic'],
      registers,
      async collect() {
        const { stalled } = await ask()
        for (const { name: topic } of topics) this.set({ topic }, missingOf(stalled, topic))
      }
    }),
    ...readerMetrics(registers),
    loadedEvents: new Counter({
      name: 'gamenet_loaded_events_total',
      help: 'Events stored in event tables by this process, including repeated ones',
      labelNames: ['topic'],
      registers
    }),
    passedOverEvents: new Counter({
      name: 'gamenet_passed_over_events_total',
      help: 'Events of the log that cannot be decrypted any more, because their subject was erased',
      labelNames: ['topic'],
      registers
    }),
    deadLetters: new Gauge({
      name: 'gamenet_dead_letters',
      help: 'Unreadable messages that wait for a decision',
      labelNames: ['topic'],
      registers,
      async collect() {
        for (const [topic, messages] of await sources.deadLetters()) this.set({ topic }, messages)
      }
    }),
    insertSeconds: new Histogram({
      name: 'gamenet_insert_seconds',
      help: 'Time of an insert into an event table',
      buckets: SECONDS,
      registers
    }),
    ...projectionMetrics(registers)
  }
}

function projectionMetrics(registers: Registry[]) {
  return {
    projectionLag: new Gauge({
      name: 'gamenet_projection_lag_events',
      help: 'Events in the event table that a projection has not consumed yet',
      labelNames: ['projection'],
      registers
    }),
    projectionFailing: new Gauge({
      name: 'gamenet_projection_failing',
      help: '1 while the last step of a projection failed',
      labelNames: ['projection'],
      registers
    }),
    ownProjections: new Gauge({
      name: 'gamenet_projection_own',
      help: '1 if this projector runs the projection, 0 if another one does',
      labelNames: ['projection'],
      registers
    }),
    projectionStepSeconds: new Histogram({
      name: 'gamenet_projection_step_seconds',
      help: 'Time of the statement of a projection step',
      labelNames: ['projection'],
      buckets: SECONDS,
      registers
    })
  }
}

function readerMetrics(registers: Registry[]) {
  return {
    assignedPartitions: new Gauge({
      name: 'gamenet_loader_assigned_partitions',
      help: 'Partitions that the consumer group of the loaders assigned to this process',
      labelNames: ['topic'],
      registers
    }),
    replacedReaders: new Counter({
      name: 'gamenet_loader_replaced_readers_total',
      help: 'Consumers of the log that failed or were stuck, and were replaced',
      registers
    })
  }
}

function addLagSeconds(registers: Registry[], ask: () => Promise<LogState>): void {
  new Gauge({
    name: 'gamenet_loader_lag_seconds',
    help: 'Age of the oldest event that is not in the event tables; rises while the log does not answer',
    labelNames: ['topic'],
    registers,
    async collect() {
      for (const [topic, seconds] of (await ask()).lagSeconds?.topics ?? []) this.set({ topic }, seconds)
    }
  })
  new Gauge({
    name: 'gamenet_projection_lag_seconds',
    help: 'Age of the oldest event that a projection has not consumed; rises while the log does not answer',
    labelNames: ['projection'],
    registers,
    async collect() {
      for (const [projection, seconds] of (await ask()).lagSeconds?.projections ?? []) this.set({ projection }, seconds)
    }
  })
}

function missingOf(stalled: readonly StalledPartition[], topic: string): number {
  const missing = stalled
    .filter((stall) => stall.topic === topic)
    .map(({ first, wanted }) => Math.max(0, first - wanted))
  return missing.reduce((sum, events) => sum + events, 0)
}

/** Combines the concurrent reads of several gauges into one. */
function joined<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let asking: Promise<Answer> | undefined
  return () => {
    asking ??= ask().finally(() => {
      asking = undefined
    })
    return asking
  }
}
