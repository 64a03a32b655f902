import { ClickHouseError, NewerDatabase } from '@gamenet/engines'
import { MissingTables, NewerTables } from '@gamenet/projector'
import { FailureError } from '../config.js'

/** The way out of damaged tables: the log contains all events of the tables. */
export const TABLES_WAY_OUT =
  'Stop the service, move the folder `tables` of its data directory away and start it: the tables are rebuilt from the log, as far as the log goes back; decisions on dead letters and gaps are lost. Or restore the newest backup: gamenet restore DIR.'

/** ClickHouse's codes for damaged files: CANNOT_PARSE_INPUT, CANNOT_READ_ALL_DATA, CHECKSUM_DOESNT_MATCH and others. */
const DAMAGE_CODES: ReadonlySet<number> = new Set([27, 32, 33, 40, 76, 79, 107, 117, 125, 228, 246, 259, 271, 432, 740])

/** Returns whether ClickHouse could not read a table because its files are damaged. */
export function isOfDamage(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && error.code !== undefined && DAMAGE_CODES.has(error.code)
}

/** Returns the error of an embedded ClickHouse that cannot read the files of a table, as a sentence with a way out. */
export function orDamaged(error: unknown): unknown {
  if (!isOfDamage(error)) return error
  const [, table] = IN_TABLE.exec(error.message) ?? []
  const what = table === undefined ? 'Files of the tables' : `Files of the table ${table}`
  return new FailureError(
    `${what} are damaged. Run \`gamenet verify --repair\`, then start the service. If that fails too: ${TABLES_WAY_OUT}`
  )
}

const IN_TABLE = /\bin table (?:\w+\.)?(\w+)/

/** Turns the error of an older program on newer data into a sentence for the user. */
export async function asFailure<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    if (error instanceof NewerTables || error instanceof NewerDatabase) throw new FailureError(error.message)
    if (error instanceof MissingTables) throw new FailureError(`${error.message} ${TABLES_WAY_OUT}`)
    throw error
  }
}
