import { createHash } from 'node:crypto'
import { ANALYST_LIMITS } from '@gamenet/engines/sql'
import { datasetViews } from '../../stores/dataset-views.js'

/** Name of the user, role, settings profile, quota and database on a ClickHouse server. */
export const ANALYST = 'gamenet_analyst'

/**
 * Returns the statements that make a user for analysts on a ClickHouse server: views of the datasets in a database of
 * their own, which read with the rights of their definer, and limits that the user cannot raise. Repeatable; a given
 * password replaces the one before.
 */
export function analystStatements(password: string): readonly string[] {
  const { seconds, memoryBytes, rows, bytes } = ANALYST_LIMITS
  const views = datasetViews((table) => table).map(
    ({ name, select }) =>
      `CREATE OR REPLACE VIEW ${ANALYST}.${name} DEFINER = CURRENT_USER SQL SECURITY DEFINER AS ${select}`
  )
  const hash = createHash('sha256').update(password).digest('hex')
  return [
    `CREATE DATABASE IF NOT EXISTS ${ANALYST}`,
    ...views,
    // `readonly = 2`: drivers set formats and time zones; they cannot change the constants.
    `CREATE SETTINGS PROFILE OR REPLACE ${ANALYST} SETTINGS readonly = 2 CONST, max_execution_time = ${seconds} CONST,
      max_memory_usage = ${memoryBytes} CONST, max_result_rows = ${rows} CONST, max_result_bytes = ${bytes} CONST,
      max_threads = 2 CONST, priority = 10 CONST, allow_introspection_functions = 0 CONST, allow_ddl = 0 CONST`,
    `CREATE ROLE IF NOT EXISTS ${ANALYST}`,
    `GRANT SELECT ON ${ANALYST}.* TO ${ANALYST}`,
    `CREATE QUOTA OR REPLACE ${ANALYST} FOR INTERVAL 1 HOUR MAX queries = 2000, execution_time = 600 TO ${ANALYST}`,
    `CREATE USER OR REPLACE ${ANALYST}_user IDENTIFIED WITH sha256_hash BY '${hash}' DEFAULT ROLE ${ANALYST}
      DEFAULT DATABASE ${ANALYST} SETTINGS PROFILE '${ANALYST}'`,
    `GRANT ${ANALYST} TO ${ANALYST}_user`
  ]
}
