/*
 * SQL of people who read datasets and nothing else.
 */
export { ClickHouseError } from './clickhouse/clickhouse.js'
export { codeOf } from './clickhouse/parameters.js'
export { ANALYST, ANALYST_SECONDS, readerStatements } from './clickhouse/readers.js'
export { type Analyst, openAnalyst } from './sql/analyst.js'
