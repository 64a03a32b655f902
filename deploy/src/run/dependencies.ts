import type { ClientAddresses, DataVersions, StreamedTables } from '@gamenet/api'
import type { Postgres } from '@gamenet/engines'
import type { Ingest, People } from '@gamenet/ingest'
import type { Projector, ReadSide } from '@gamenet/projector'
import type { Demo } from '../../demo/demo.js'
import type { ProcessContext } from '../stores/component.js'
import type { ConcurrentWriters } from '../stores/concurrent-writers.js'
import type { TableDamage } from '../stores/damaged-tables.js'
import type { Engines } from '../stores/engines.js'
import type { SpoolingLog } from '../stores/spooling-log.js'
import type { ConnectionLimit } from './connection-limits.js'
import type { ReadinessCheck } from './readiness.js'
import type { ServiceOperations } from './service-operations.js'

/** The value of each component, for those below it: undefined if the role does not run it. */
export type Dependencies = {
  /** Damage and failures that this process knows of, for `gamenet status`. */
  damageMet: Set<string>
  onUncaught: (error: unknown) => void
  connectionLimit: ConnectionLimit
  /** The addresses by which clients of the API are limited. */
  clients: ClientAddresses
  engines: Engines
  concurrentWriters: ConcurrentWriters
  /** The names of the migrations applied to the tables. */
  migrations: string[]
  /** Opens the write side, whose next numbers are above those of the tables and the log. */
  numberedWrites: () => Promise<Postgres>
  damage: TableDamage
  /** The readable tables. */
  tables: StreamedTables
  readSide: ReadSide
  dataVersions: DataVersions
  projector: Projector | undefined
  demo: Demo | undefined
  authUrl: string | undefined
  people: People
  spool: SpoolingLog | undefined
  ingest: Ingest | undefined
  readiness: ReadinessCheck
  operations: ServiceOperations
  api: string | undefined
  operatorToken: string | undefined
  operatorPort: string | undefined
  metricsPort: string | undefined
}

/** Components that others do not read: steps of a start, and what a stop ends. */
export type Steps = Record<
  | ('processWarnings' | 'engineMetrics' | 'suitableTables' | 'erasures' | 'wholeLog')
  | ('announcement' | 'scraping' | 'unfinishedErasures' | 'unfinishedImportUndos'),
  unknown
> & {
  operationsInFlight: ServiceOperations
  uncleanLog: () => void
  upstreamNotice: NodeJS.Timeout | undefined
  relay: { stop(): Promise<void> } | undefined
  demoHistory: { stop(): Promise<void> } | undefined
}

export type Needs = ProcessContext & Dependencies
