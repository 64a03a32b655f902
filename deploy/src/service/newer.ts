import { NewerDatabase } from '@gamenet/engines'
import { NewerTables } from '@gamenet/projector'
import { FailureError } from '../config.js'

/** What an older program finds of a newer one is no defect: a sentence for the user. */
export async function orNewer<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    if (error instanceof NewerTables || error instanceof NewerDatabase) throw new FailureError(error.message)
    throw error
  }
}
