import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** What the projector measures of itself. Bucket bounds in seconds, from a small step to a step over a whole backlog. */
export type Metrics = ReturnType<typeof projectorMetrics>

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120]

/** Registers the projector's metrics. `lag` gives what the log holds beyond the event tables, asked at each scrape. */
export function projectorMetrics(registry: Registry, lag: () => Promise<ReadonlyMap<string, number>>) {
  const registers = [registry]
  return {
    loaderLag: new Gauge({
      name: 'gamenet_loader_lag_events',
      help: 'Events in the log that are not in the event tables yet',
      labelNames: ['topic'],
      registers,
      async collect() {
        for (const [topic, events] of await lag()) this.set({ topic }, events)
      }
    }),
    loadedEvents: new Counter({
      name: 'gamenet_loaded_events_total',
      help: 'Events stored in event tables by this process, repeated ones too',
      labelNames: ['topic'],
      registers
    }),
    passedOverEvents: new Counter({
      name: 'gamenet_passed_over_events_total',
      help: 'Events of the log that nobody can open any more, since somebody whom they are about was forgotten',
      labelNames: ['topic'],
      registers
    }),
    parkedMessages: new Gauge({
      name: 'gamenet_parked_messages',
      help: 'Messages that could not be read and wait for a decision',
      labelNames: ['topic'],
      registers
    }),
    insertSeconds: new Histogram({
      name: 'gamenet_insert_seconds',
      help: 'Time of an insert into an event table',
      buckets: SECONDS,
      registers
    }),
    projectionLag: new Gauge({
      name: 'gamenet_projection_lag_events',
      help: 'Events in the event table that a projection has not taken yet',
      labelNames: ['projection'],
      registers
    }),
    projectionFailing: new Gauge({
      name: 'gamenet_projection_failing',
      help: '1 while the last step of a projection failed',
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
