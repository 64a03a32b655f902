/*
 * Statements of analysts, which run in a separate process. Nothing here loads chDB into the caller: that would cost a
 * command 150 MiB and half a second of processor time.
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
export { SERIALIZATION_REVISION, withRevision } from './sql/native-revision.js'
