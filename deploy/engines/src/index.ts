export { type ChdbOptions, type EmbeddedClickHouse, openChdb } from './clickhouse/chdb.js'
export {
  type AbortOptions,
  type ClickHouse,
  ClickHouseError,
  LANE_NAMES,
  type Lane,
  type LaneName
} from './clickhouse/clickhouse.js'
export { openPinned } from './clickhouse/pin.js'
export { openClickHouseServer } from './clickhouse/server.js'
export { LANE_LIMITS } from './clickhouse/statement.js'
export { migratePostgres, newestMigration } from './postgres/migrate.js'
export { openPglite } from './postgres/pglite.js'
export type { Postgres, Queries } from './postgres/postgres.js'
export { openPostgres } from './postgres/server.js'
export { transactionAge } from './postgres/transaction-age.js'
