import { readFile } from 'node:fs/promises'
import { type Postgres, transactionAge } from '@gamenet/engines'
import { Gauge, type Registry } from 'prom-client'
import { addDiskMetrics } from '../data-directory/disk-metrics.js'
import type { Engines } from '../stores/engines.js'
import { faultOf } from './readiness.js'

/** Adds the engines' queues and disks as gauges, measured when metrics are collected. */
export function addEngineMetrics(registry: Registry, engines: Engines): void {
  addDiskMetrics(registry, engines.disk)
  if (engines.clickhouse.process !== undefined) addRestarts(registry, engines.clickhouse.process)
  if (engines.clickhouse.replicas !== undefined) addReplicas(registry, engines.clickhouse.replicas)
  if (engines.postgres !== undefined) addTransactionAge(registry, engines.postgres)
  if (engines.postgres?.stats !== undefined) addPool(registry, engines.postgres.stats)
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

function addRestarts(registry: Registry, processOf: NonNullable<Engines['clickhouse']['process']>): void {
  new Gauge({
    name: 'gamenet_clickhouse_restarts',
    help: 'How often the process of the embedded ClickHouse was started again since the start of the service',
    registers: [registry],
    collect() {
      this.set(processOf().restarts)
    }
  })
  new Gauge({
    name: 'gamenet_clickhouse_resident_memory_bytes',
    help: 'Resident memory of the process of the embedded ClickHouse; on Linux',
    registers: [registry],
    async collect() {
      const status = await readFile(`/proc/${processOf().pid}/status`, 'utf8').catch(() => '')
      this.set(1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0))
    }
  })
}

function addReplicas(registry: Registry, replicas: NonNullable<Engines['clickhouse']['replicas']>): void {
  new Gauge({
    name: 'gamenet_clickhouse_replicas',
    help: 'Addresses of CLICKHOUSE_URL: the one that this process uses, those that are healthy, and those that failed',
    labelNames: ['state'] as const,
    registers: [registry],
    collect() {
      const found = replicas()
      const failed = found.filter(({ fault }) => fault !== undefined).length
      this.set({ state: 'used' }, found.filter(({ isPinned }) => isPinned).length)
      this.set({ state: 'healthy' }, found.length - failed)
      this.set({ state: 'failed' }, failed)
    }
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

function addPool(registry: Registry, stats: NonNullable<Postgres['stats']>): void {
  new Gauge({
    name: 'gamenet_postgres_connections',
    help: 'Connections to PostgreSQL that are used or idle, and statements that wait for one',
    labelNames: ['state'] as const,
    registers: [registry],
    collect() {
      const { used, idle, waiting } = stats()
      for (const [state, value] of Object.entries({ used, idle, waiting })) this.set({ state }, value)
    }
  })
  new Gauge({
    name: 'gamenet_postgres_deaf_listeners',
    help: 'Listeners that get no notifications of PostgreSQL: they poll every second, or cannot connect',
    registers: [registry],
    collect() {
      this.set(stats().deafListeners)
    }
  })
}
