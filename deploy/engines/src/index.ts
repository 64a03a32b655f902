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
