import { backUp } from '../backup/backup.js'
import { FailureError, UsageError } from '../config.js'
import type { Operations } from '../operator/operations.js'
import type { Engines } from '../wiring/engines.js'

/** Backups of this process's own engines, one at a time. */
export function backupOperation(engines: Engines, signal: AbortSignal): Operations['backup'] {
  let target: string | undefined
  return async (directory, onProgress) => {
    const { directory: dataDirectory, log, clickhouse, isEmbedded } = engines
    if (!isEmbedded || dataDirectory === undefined || log.files === undefined) {
      throw new UsageError(
        'This copies a service whose engines are all embedded; with KAFKA_BROKERS, CLICKHOUSE_URL or POSTGRES_URL back each server up with its own tools, in the order of docs/operators/backup.md.'
      )
    }
    if (target !== undefined) {
      throw new FailureError(`A backup to ${target} is under way; wait for its end, or stop the service to end it.`)
    }
    target = directory
    try {
      const writes = await engines.writes()
      return await backUp(
        { directory: dataDirectory, log: log.files, clickhouse, writes, onProgress, signal },
        directory
      )
    } finally {
      target = undefined
    }
  }
}
