import { ClickHouseError } from '@gamenet/engines'
import { isOfLmdbDamage, LogDamaged } from '@gamenet/engines/log'
import { errorCode, errorMessage, isFailure, isTableDropped, Refusal } from '@gamenet/schemas'
import { FailureError, FilesDamaged, UsageError } from '../config.js'
import { fileFailure } from '../data-directory/file-failure.js'
import { unwritableDisk } from '../data-directory/unwritable-disk.js'
import { reasonOf, shown } from './damage.js'

/** The way out of damage that nothing else repairs. */
export const RESTORE = 'stop the service and restore the newest backup: gamenet restore DIR'

/** The way out of a write side that is older than the tables. An older backup would lose more than it repairs. */
export const NEWER_WRITES =
  'put a newer copy of PostgreSQL (`writes` in the data directory) back, or restore a newer backup: gamenet restore ' +
  'DIR. Without either, start with --accept-older: keys of people and changes that it lacks stay lost, and nothing ' +
  'about people is rebuilt from the log by itself'

/** The way out of damaged tables: the log contains all events of the tables. */
export const MAKE_TABLES_AGAIN =
  'stop the service, move the folder `tables` of its data directory away and start it: the tables are rebuilt from ' +
  'the log, as far as the log goes back; decisions on dead letters and gaps are lost. Or restore the newest backup: ' +
  'gamenet restore DIR'

const REPAIR_TABLES = 'the running service rebuilds what it can (gamenet status). If it does not start again, '.concat(
  MAKE_TABLES_AGAIN
)
/** The way out of damaged parts on a ClickHouse server, which other processes use meanwhile. */
export const REPAIR_SERVER =
  'restore the part on the server from a backup; or detach it (ALTER TABLE ... DETACH PART ...) and rebuild what ' +
  'reads the table: gamenet rebuild start <projection>, with --from-log for a table event_*'

/** ClickHouse's codes for damaged files: CANNOT_PARSE_INPUT, CANNOT_READ_ALL_DATA, CHECKSUM_DOESNT_MATCH and others. */
const DAMAGE_CODES: ReadonlySet<number> = new Set([
  27, 32, 33, 40, 76, 79, 107, 117, 125, 226, 228, 246, 259, 271, 432, 740
])
/**
 * ClickHouse's codes for statements that do not fit the definition of a table: UNKNOWN_IDENTIFIER, TYPE_MISMATCH and
 * others.
 */
export const MISFIT_CODES: ReadonlySet<number> = new Set([10, 16, 43, 44, 47, 53, 386])
/** A statement, or a query with temporary files, had no space. */
export const NOT_ENOUGH_SPACE = 243
/** The code of errors of C++'s library, such as that of a missing file. */
const STD_EXCEPTION = 1001

/** On a full disk, ClickHouse leaves its counter of freezes empty, and reports that it cannot read it. */
const FREEZE_WITHOUT_SPACE = /increment\.txt is empty/

/**
 * An expression failed, on a constant of the statement or on a value of a row; ClickHouse has the same codes for
 * files.
 */
const OF_A_VALUE = /: In scope |: while executing '?function /i

/** Returns whether ClickHouse could not read a table because its files are damaged. */
export function isOfDamage(error: unknown): error is ClickHouseError {
  if (!(error instanceof ClickHouseError) || error.code === undefined) return false
  if (FREEZE_WITHOUT_SPACE.test(error.message) || OF_A_VALUE.test(error.message)) return false
  return (
    DAMAGE_CODES.has(error.code) ||
    (error.code === STD_EXCEPTION && /filesystem error.*No such file/s.test(error.message))
  )
}

/**
 * Returns an error of the machine, of files or of an engine as a sentence with a way out; any other error unchanged.
 * @param path the data directory, if an engine is embedded
 * @param ownsTables whether ClickHouse is embedded
 */
export async function explained(error: unknown, path: string | undefined, ownsTables: boolean): Promise<unknown> {
  if (error instanceof FilesDamaged || error instanceof UsageError) return error
  const isOfServer = !ownsTables && clickHouseErrorIn(error) !== undefined
  const ofDisk = path === undefined || isOfServer ? undefined : await unwritableDisk(path, error)
  return ofDisk ?? fileFailure(error, path ?? '') ?? engineFailure(error, ownsTables)
}

/**
 * Returns an engine's error about its files or their version as a sentence with a way out; any other error unchanged.
 */
export function engineFailure(error: unknown, ownsTables: boolean): unknown {
  if (error instanceof FailureError) return error
  const ofTables = clickHouseErrorIn(error)
  const isRefusal = error instanceof Refusal && error.code === 'data_damaged'
  // A refusal because of a table that is listed as damaged has no cause, and is news of nothing.
  if (isRefusal && ofTables === undefined && error.cause !== undefined)
    return new FilesDamaged('writes', `The write side is damaged: ${errorMessage(error.cause)}`, RESTORE)
  if (error instanceof LogDamaged) return new FilesDamaged('log', error.what, RESTORE)
  if (isOfLmdbDamage(error))
    return new FilesDamaged('log', `The log's file data.mdb is damaged: ${error.message}`, RESTORE)
  if (ofTables !== undefined && (ofTables.code === NOT_ENOUGH_SPACE || FREEZE_WITHOUT_SPACE.test(ofTables.message))) {
    const of = ownsTables ? 'their disk' : 'the disk of the ClickHouse server'
    return new FailureError(
      `The tables cannot be written or copied, because ${of} is full. Free space on it, and repeat the command.`
    )
  }
  if (ofTables !== undefined && (isOfDamage(ofTables) || isRefusal)) {
    const what = tableOf(ofTables)
    if (ownsTables)
      return new FilesDamaged('tables', `${what} are damaged`, isOfDamage(ofTables) ? REPAIR_TABLES : MAKE_TABLES_AGAIN)
    // The logs of the server may be out of reach.
    const said = shown(ofTables.message).replace(/\.$/, '')
    return new FilesDamaged('tables', `${what} on the ClickHouse server are damaged: ${said}`, REPAIR_SERVER)
  }
  if (isFailure(error, 'newer_store', 'engine_unstarted')) return new FailureError(error.message)
  const text = (error instanceof Error ? error.message : '').replace(/\.$/, '')
  if (isFailure(error, 'topics_refused', 'log_unreachable')) return new FailureError(`Kafka: ${text}.`)
  if (isFailure(error, 'tables_missing', 'tables_unopened')) return new FilesDamaged('tables', text, MAKE_TABLES_AGAIN)
  if (isFailure(error, 'log_unopened')) return new FilesDamaged('log', text, RESTORE)
  if (isFailure(error, 'writes_unopened')) return new FilesDamaged('writes', text, RESTORE)
  return error
}

/** Returns ClickHouse's error that this error is, or is caused by. */
function clickHouseErrorIn(error: unknown): ClickHouseError | undefined {
  if (error instanceof ClickHouseError) return error
  return error instanceof Error ? clickHouseErrorIn(error.cause) : undefined
}

/** Damage beyond these is only in the log. */
const DAMAGE_NAMED = 10

/** Adds damage to what `gamenet status` reports; that of tables which are rebuilt has a list of its own. */
export function noteDamage(met: Set<string>, failure: unknown): void {
  if (!(failure instanceof FilesDamaged) || failure.repair === REPAIR_TABLES) return
  if (met.size < DAMAGE_NAMED) met.add(`${failure.what} (gamenet verify)`)
}

/** Returns the engine's name of the table whose files are damaged; undefined if the error does not name it. */
export const tableOfDamage = ({ message }: ClickHouseError): string | undefined => IN_TABLE.exec(message)?.[1]

function tableOf(error: ClickHouseError): string {
  const table = tableOfDamage(error)
  return table === undefined ? 'Files of the tables' : `Files of the table ${table}`
}

const IN_TABLE = /\bin table (?:\w+\.)?(\w+)/

/** An unreadable table of the tables or of the write side is a finding of its own. */
export function noneIfDamaged(error: unknown): never[] {
  undefinedIfDamaged(error)
  return []
}

export function undefinedIfDamaged(error: unknown): undefined {
  if (!isDamage(error) && !isTableDropped(error)) throw error
}

/** Returns what an engine said, and the command that says more. */
export function failureText(error: unknown): string {
  return `${reasonOf(error)} (gamenet ${isDamage(error) ? 'verify' : 'doctor'})`
}

const isDamage = (error: unknown): boolean => isOfDamage(error) || DAMAGED_WRITES.test(errorCode(error))

/**
 * Damage that `openPglite` reports, and other errors of PostgreSQL in the classes data exception, system error and
 * internal error.
 */
const DAMAGED_WRITES = /^(data_damaged|(22|58|XX)\w{3})$/
