import type { PassLock, Projector, ProjectorOptions } from '@gamenet/projector'
import { FILLS_LOCK, PASSES_LOCK } from '@gamenet/schemas'
import { Histogram, type Registry } from 'prom-client'
import type { Config } from '../config.js'
import { dividedPasses, postgresLocks } from './divided-passes.js'
import type { Engines } from './engines.js'
import { advisoryLocks, sharedPasses } from './postgres-pass-lock.js'

/** Coordination with other writers of the same tables. */
export type ConcurrentWriters = {
  readonly isShared?: true
  readonly passLock?: PassLock
  readonly rebuildLock?: PassLock
  readonly division?: NonNullable<ProjectorOptions['division']>
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
    division: dividedPasses(postgresLocks(() => engines.writes())),
    passLock: sharedPasses({ ...needs, lock: PASSES_LOCK, onWaited: (s) => waits.observe({ lock: 'passes' }, s) }),
    rebuildLock: sharedPasses({ ...needs, lock: FILLS_LOCK, onWaited: (s) => waits.observe({ lock: 'rebuilds' }, s) })
  }
}

/** Runs steps that write rows, and waits for those that run, of this process's projector and of all others. */
export type Steps = Pick<Projector, 'inStep' | 'stepsEnded'>

/** Returns the steps of a process without a projector. */
export function stepsOf({ passLock, rebuildLock }: ConcurrentWriters): Steps {
  return {
    inStep: async (step) => {
      if (rebuildLock === undefined) return await step()
      return await rebuildLock.shared(async (check) => {
        const result = await step()
        await check()
        return result
      })
    },
    stepsEnded: async () => {
      for (const each of [passLock, rebuildLock]) await each?.exclusive(async () => undefined)
    }
  }
}
