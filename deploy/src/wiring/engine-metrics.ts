import { type Postgres, transactionAge } from '@gamenet/engines'
import { Gauge, type Registry } from 'prom-client'
import { addDiskMetrics } from '../disk/disk-metrics.js'
import type { Engines } from './engines.js'
import { faultOf } from './readiness.js'

/** Adds the engines' queues and disks as gauges, measured when metrics are collected. */
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
    help: 'Statements refused since the start because the queue was full, by lane',
    labelNames: ['lane'] as const,
    registers: [registry]
  })
}

function addTransactionAge(registry: Registry, postgres: Postgres): void {
  new Gauge({
    name: 'gamenet_postgres_transaction_age',
    help: 'Age in transactions of the oldest unfrozen row; at 2147483648 PostgreSQL refuses writes',
    registers: [registry],
    async collect() {
      const age = transactionAge(postgres)
      // While PostgreSQL is unavailable, the gauge keeps the last known age.
      await faultOf(age.then((transactions) => this.set(transactions)))
    }
  })
}
