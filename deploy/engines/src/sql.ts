/*
 * Statements of analysts, which run in a separate process.
 */
export { statusOf } from './clickhouse/http-status.js'
export { codeOf } from './clickhouse/parameters.js'
export {
  ANALYST_FORMATS,
  ANALYST_LIMITS,
  type Analyst,
  type AnalystFormat,
  type AnalystLimits,
  openAnalyst,
  StatementFailed
} from './sql/analyst.js'
export { STATEMENT_LENGTH_MAX, StatementRefused } from './sql/check-select.js'
