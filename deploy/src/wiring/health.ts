import type { DataVersions, Readiness } from '@gamenet/api'
import { type Postgres, transactionAge } from '@gamenet/engines'
import { withTimeout } from '@gamenet/schemas'
import { Gauge, type Registry } from 'prom-client'
import { addDiskMetrics } from '../disk/disk-metrics.js'
import type { Engines } from './engines.js'
import type { LostRows } from './lost-rows.js'

/** Longer than a query that waits its turn, shorter than what probes usually allow. */
const CHECK_MS = 2000

/** Whether every engine of the service answers; joined when several ask at once. */
export function readiness(
  engines: Engines,
  dataVersions: DataVersions,
  needsVersions: boolean,
  lostRows: Pick<LostRows, 'repairing'>
): () => Promise<Readiness> {
  let asking: Promise<Readiness> | undefined
  const ask = async (): Promise<Readiness> => {
    const checks: [string, Promise<unknown>][] = [
      ['tables', engines.clickhouse.control.rows('SELECT 1 AS one')],
      ['log', engines.log.extents('scrape')],
      ...(engines.postgres === undefined
        ? []
        : [['writes', engines.postgres.check()] satisfies [string, Promise<unknown>]])
    ]
    // The first fault answers; one that comes later must not end the process.
    for (const [, check] of checks) check.catch(() => undefined)
    for (const [role, check] of checks) {
      const name = `${role} (${engines.names[role]})`
      const fault = await faultOf(check)
      if (fault !== undefined) return { ok: false, reason: `${name} ${fault}` }
    }
    if (needsVersions && !dataVersions.isCurrent)
      return { ok: false, reason: 'what changed in the tables is not known yet' }
    return { ok: true, repairing: lostRows.repairing() }
  }
  return () => {
    asking ??= ask().finally(() => {
      asking = undefined
    })
    return asking
  }
}

async function faultOf(check: Promise<unknown>): Promise<string | undefined> {
  const fault = check.then(
    () => undefined,
    () => 'cannot be reached'
  )
  return await withTimeout(fault, CHECK_MS, () => `did not answer within ${CHECK_MS} ms`)
}

/** The engine's queues and disks, as gauges that are read when metrics are asked for. */
export function addEngineMetrics(registry: Registry, engines: Engines): void {
  addDiskMetrics(registry, engines.disk)
  if (engines.postgres !== undefined) addTransactionAge(registry, engines.postgres)
  const waiting = new Gauge({
    name: 'gamenet_engine_waiting_statements',
    help: 'Statements that wait for a connection to ClickHouse, by lane',
    labelNames: ['lane'] as const,
    registers: [registry],
    collect: () => {
      for (const [lane, figures] of Object.entries(engines.clickhouse.stats().lanes)) {
        waiting.set({ lane }, figures.waiting)
        refused.set({ lane }, figures.refused)
      }
    }
  })
  const refused = new Gauge({
    name: 'gamenet_engine_refused_statements',
    help: 'Statements refused since the start because too many waited, by lane',
    labelNames: ['lane'] as const,
    registers: [registry]
  })
}

function addTransactionAge(registry: Registry, postgres: Postgres): void {
  new Gauge({
    name: 'gamenet_postgres_transaction_age',
    help: 'Transactions since the oldest one that is not frozen; at 2147483648 PostgreSQL takes no more writes',
    registers: [registry],
    async collect() {
      const age = transactionAge(postgres)
      // While PostgreSQL is away, the age is the last that was known.
      await faultOf(age.then((transactions) => this.set(transactions)))
    }
  })
}
