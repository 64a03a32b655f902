export { type ChdbOptions, openChdb } from './clickhouse/chdb.js'
export {
  type ClickHouse,
  ClickHouseError,
  type ClickHouseStats,
  type Lane,
  type LaneName,
  type LaneStats,
  type ReadOptions
} from './clickhouse/clickhouse.js'
export { type EmbeddedLog, type EmbeddedLogOptions, openEmbeddedLog } from './log/embedded-log.js'
