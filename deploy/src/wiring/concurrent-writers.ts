import type { Passes, Projector } from '@gamenet/projector'
import { FILLS_LOCK, PASSES_LOCK } from '@gamenet/schemas'
import type { Config } from '../config.js'
import type { Engines } from './engines.js'
import { sharedPasses } from './passes.js'

/** What a projector is told of others that write to the same tables. */
export type ConcurrentWriters = { readonly isShared?: true; readonly passes?: Passes; readonly fills?: Passes }

/** A ClickHouse server may have other projectors; a shared PostgreSQL is where they agree. */
export function concurrentWriters(config: Config, engines: Engines): ConcurrentWriters {
  if (config.CLICKHOUSE_URL === undefined) return {}
  if (config.POSTGRES_URL === undefined) return { isShared: true }
  const needs = { writes: () => engines.writes(), tables: engines.clickhouse.control }
  return {
    isShared: true,
    passes: sharedPasses({ ...needs, lock: PASSES_LOCK }),
    fills: sharedPasses({ ...needs, lock: FILLS_LOCK })
  }
}

/** Runs a step that writes rows where whoever waits for steps waits for it, in this process or another. */
export function stepRunner({ fills }: ConcurrentWriters, projector?: Pick<Projector, 'inStep'>): Projector['inStep'] {
  if (projector !== undefined) return (step) => projector.inStep(step)
  if (fills === undefined) return (step) => step()
  return (step) =>
    fills.together(async (check) => {
      const result = await step()
      await check()
      return result
    })
}

/** Waits for the steps that write rows and have begun, of this process's projector and of all others. */
export function stepsEnded(others: ConcurrentWriters, projector?: Pick<Projector, 'stepsEnded'>): () => Promise<void> {
  if (projector !== undefined) return () => projector.stepsEnded()
  return async () => {
    for (const each of [others.passes, others.fills]) await each?.alone(async () => undefined)
  }
}
