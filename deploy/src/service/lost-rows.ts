import { setTimeout as wait } from 'node:timers/promises'
import type { ClickHouse } from '@gamenet/engines'
import {
  beginRepair,
  dropLostParts,
  findLostParts,
  incompleteReads,
  type LostPart,
  type Projector,
  projections,
  repairOf,
  type Target
} from '@gamenet/projector'
import { type PartitionExtent, Refusal, topics } from '@gamenet/schemas'
import type { Logger } from 'pino'
import { Gauge, type Registry } from 'prom-client'
import type { Engines } from './engines.js'

/** A table that lost rows, as status tells of it. */
export type LostTable = {
  readonly table: string
  readonly parts: number
  /** `repairing`: its rows are being made again. `left`: it is for an operator to decide. */
  readonly state: 'repairing' | 'left'
  readonly reason: string
}

/** Tables whose rows were lost with parts that the engine could not read, and how they get them back. */
export type LostRows = {
  /** Refuses to read what is being made again: an answer without the lost rows would be wrong, and so would a scrape's comparison. */
  guarded(readers: ClickHouse['readers']): Pick<ClickHouse['readers'], 'rows' | 'json'>
  /** Sees the repair through, in the background, when the projector has been started. */
  finish(projector: Projector): void
  status(): Promise<LostTable[]>
  /** The tables whose rows are being made again. */
  repairing(): readonly string[]
  stop(): Promise<void>
}

const RETRY_AFTER_SECONDS = 30
const AGAIN_MS = 5000
const EXTENTS_MS = 5000

/**
 * Looks for parts that were set aside, and begins to make their rows again; call it before anything loads, projects or reads.
 * Tables of a ClickHouse server are looked at alone: others load and project there meanwhile.
 */
export async function openLostRows({
  engines: { clickhouse, log, names },
  isAlone,
  registry,
  logger
}: {
  readonly engines: Pick<Engines, 'clickhouse' | 'log' | 'names'>
  /** Whether this process alone works on the tables, and has a projector. */
  readonly isAlone: boolean
  readonly registry: Registry
  readonly logger: Logger
}): Promise<LostRows> {
  const tables = clickhouse.control
  const stopping = new AbortController()
  const found = await findLostParts(tables).catch((error: unknown) => {
    if (error instanceof Refusal) return []
    throw error
  })
  const repair = repairOf(projections, isAlone ? tablesOf(found) : new Set())
  for (const [table, reason] of sentences(found, repair.lasting, isAlone)) logger.error({ table }, reason)
  const repairing = new Set(isAlone ? tablesOf(found) : [])
  let incomplete: Awaited<ReturnType<typeof incompleteReads>> = () => undefined
  let targets: readonly Target[] = []
  if (isAlone && found.length > 0) {
    incomplete = await incompleteReads(tables, repair.incomplete)
    const begun = await beginRepair(tables, projections, repair, await extentsOf(log))
    for (const gone of begun.gone) {
      logger.error(
        gone,
        `${names.log} has the events of ${gone.topic} from offset ${gone.next} on: lost rows of earlier ones stay lost`
      )
    }
    targets = begun.targets
  }
  addMetric(registry, tables)
  const refuse = (sql: string): void => {
    const table = incomplete(sql)
    if (table === undefined) return
    throw new Refusal('table_incomplete', [table], { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
  let finishing = Promise.resolve()
  return {
    guarded: (readers) => ({
      rows: async (sql, ...more) => {
        refuse(sql)
        return await readers.rows(sql, ...more)
      },
      json: async (sql, ...more) => {
        refuse(sql)
        return await readers.json(sql, ...more)
      }
    }),
    finish: (projector) => {
      if (!isAlone || found.length === 0) return
      finishing = untilDone(projector, targets, stopping.signal, logger).then(async (isDone) => {
        if (!isDone) return
        incomplete = () => undefined
        repairing.clear()
        const ours = found.filter(({ table }) => !table.includes('__'))
        await dropLostParts(tables, ours)
        logger.warn({ tables: [...tablesOf(ours)] }, 'the rows that were lost are made again')
      })
      finishing.catch((error: unknown) =>
        logger.error({ err: error }, 'what was set aside of tables cannot be dropped')
      )
    },
    repairing: () => [...repairing],
    status: async () => {
      const now = await findLostParts(tables)
      return sentences(now, repair.lasting, isAlone).map(([table, reason]) => ({
        table,
        parts: now.filter((each) => each.table === table).length,
        state: isAlone && !table.includes('__') ? 'repairing' : 'left',
        reason
      }))
    },
    stop: async () => {
      stopping.abort()
      await finishing.catch(() => undefined)
    }
  }
}

/** False when the service was stopped before. What stands still is tried again for as long as it takes. */
async function untilDone(
  projector: Projector,
  targets: readonly Target[],
  signal: AbortSignal,
  logger: Logger
): Promise<boolean> {
  for (;;) {
    try {
      await projector.settled({ targets, signal })
      return true
    } catch (error) {
      if (signal.aborted) return false
      logger.warn({ err: error }, 'rows that were lost are not made again yet')
      await wait(AGAIN_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}

function tablesOf(parts: readonly LostPart[]): ReadonlySet<string> {
  return new Set(parts.map(({ table }) => table))
}

/** What is said of each table. */
function sentences(
  parts: readonly LostPart[],
  lasting: ReadonlyMap<string, string>,
  isAlone: boolean
): readonly (readonly [string, string])[] {
  return [...tablesOf(parts)].map((table) => {
    const count = parts.filter((each) => each.table === table).length
    const found = `${count} parts of ${table} could not be read at the start and were set aside, so that rows are missing`
    const lost = lasting.get(table)
    if (lost !== undefined) return [table, `${found}: ${lost}.`]
    if (isAlone) return [table, `${found}; they are made again from the log.`]
    return [
      table,
      `${found}. Rebuild what is made of it (gamenet rebuild, with --from-log for a table event_*), and drop the parts: ` +
        `ALTER TABLE ${table} DROP DETACHED PARTITION ALL SETTINGS allow_drop_detached = 1`
    ]
  })
}

/** Where the log's topics begin and end; those that it does not tell in time are missing. */
async function extentsOf(log: Engines['log']): Promise<ReadonlyMap<string, readonly PartitionExtent[]>> {
  const extents = new Map<string, readonly PartitionExtent[]>()
  const asked = topics.map(async ({ name }) => {
    extents.set(name, await log.extents(name))
  })
  await Promise.race([Promise.allSettled(asked), wait(EXTENTS_MS, undefined, { ref: false })])
  return new Map(extents)
}

function addMetric(registry: Registry, tables: ClickHouse['control']): void {
  const gauge = new Gauge({
    name: 'gamenet_lost_parts',
    help: 'Alarm: parts of tables that could not be read at a start, whose rows are missing until they are made again',
    labelNames: ['table'],
    registers: [registry],
    async collect() {
      // Whether the tables are away other metrics tell.
      const parts = await findLostParts(tables).catch(() => undefined)
      if (parts === undefined) return
      gauge.reset()
      for (const table of tablesOf(parts)) gauge.set({ table }, parts.filter((each) => each.table === table).length)
    }
  })
}
