import type { PassLock, Projector } from '@gamenet/projector'
import { FILLS_LOCK, PASSES_LOCK } from '@gamenet/schemas'
import { Histogram, type Registry } from 'prom-client'
import type { Config } from '../config.js'
import type { Engines } from './engines.js'
import { advisoryLocks, sharedPasses } from './postgres-pass-lock.js'

/** Coordination with other writers of the same tables. */
export type ConcurrentWriters = {
  readonly isShared?: true
  readonly passLock?: PassLock
  readonly rebuildLock?: PassLock
}

/** A ClickHouse server may have other projectors, which coordinate through a shared PostgreSQL. */
export function concurrentWriters(config: Config, engines: Engines, registry: Registry): ConcurrentWriters {
  const waits = new Histogram({
    name: 'gamenet_lock_wait_seconds',
    help:
      'Waits for the locks in PostgreSQL that exclude passes, or steps of rebuilds, from work that needs unchanging ' +
      'tables',
    labelNames: ['lock'] as const,
    // A waiter gives up after 8 s.
    buckets: [0.005, 0.05, 0.25, 1, 2.5, 5, 10],
    registers: [registry]
  })
  if (config.CLICKHOUSE_URL === undefined) return {}
  if (config.POSTGRES_URL === undefined) return { isShared: true }
  const needs = { locks: advisoryLocks(() => engines.writes(), engines) }
  return {
    isShared: true,
    passLock: sharedPasses({ ...needs, lock: PASSES_LOCK, onWaited: (s) => waits.observe({ lock: 'passes' }, s) }),
    rebuildLock: sharedPasses({ ...needs, lock: FILLS_LOCK, onWaited: (s) => waits.observe({ lock: 'rebuilds' }, s) })
  }
}

/** Runs a step that writes rows. A wait for steps, in this process or another, includes it. */
export function stepRunner(
  { rebuildLock }: ConcurrentWriters,
  projector?: Pick<Projector, 'inStep'>
): Projector['inStep'] {
  if (projector !== undefined) return (step) => projector.inStep(step)
  if (rebuildLock === undefined) return (step) => step()
  return (step) =>
    rebuildLock.shared(async (check) => {
      const result = await step()
      await check()
      return result
    })
}

/** Waits for the running steps that write rows, of this process's projector and of all others. */
export function stepsEnded(others: ConcurrentWriters, projector?: Pick<Projector, 'stepsEnded'>): () => Promise<void> {
  if (projector !== undefined) return () => projector.stepsEnded()
  return async () => {
    for (const each of [others.passLock, others.rebuildLock]) await each?.exclusive(async () => undefined)
  }
}
