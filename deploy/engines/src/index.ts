export { type ChdbOptions, openChdb } from './clickhouse/chdb.js'
export {
  type AbortOptions,
  type ClickHouse,
  ClickHouseError,
  type Lane,
  type LaneName
} from './clickhouse/clickhouse.js'
export { statusOf } from './clickhouse/http-status.js'
export { codeOf } from './clickhouse/parameters.js'
export { openClickHouseServer } from './clickhouse/server.js'
export { LANE_LIMITS } from './clickhouse/statement.js'
export { migratePostgres, NewerDatabase, newestMigration } from './postgres/migrate.js'
export { openPglite } from './postgres/pglite.js'
export type { Postgres, Queries } from './postgres/postgres.js'
export { openPostgres } from './postgres/server.js'
export { transactionAge } from './postgres/transaction-age.js'
export {
  ANALYST_FORMATS,
  ANALYST_LIMITS,
  type Analyst,
  type AnalystFormat,
  type AnalystLimits,
  openAnalyst,
  StatementFailed
} from './sql/analyst.js'
export { StatementRefused } from './sql/check-select.js'
export { openStatementCheck } from './sql/statement-check.js'
