import { NewerDatabase } from '@gamenet/engines'
import { MissingTables, NewerTables } from '@gamenet/projector'
import { FailureError } from '../config.js'

/** The way out of damaged tables: the log contains all events of the tables. */
export const TABLES_WAY_OUT =
  'Stop the service, move the folder `tables` of its data directory away and start it: the tables are rebuilt from the log, as far as the log goes back. Or restore the newest backup: gamenet restore DIR.'

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
