import { z } from 'zod'
import { FailureError, UsageError } from '../../config.js'
import type { Engines } from '../../stores/engines.js'
import { operation } from '../operation.js'
import { BackupProgress, BackupReport } from './backup-report.js'

/** Targets of the running backups. */
const targets = new WeakMap<Engines, string>()

/** Copies all data of an embedded service. One backup at a time. */
export const backup = operation({
  name: 'backup',
  route: 'POST /backup',
  /** New or empty. */
  input: z.strictObject({ directory: z.string() }),
  inputRule: 'The query parameter directory must be the absolute path of a directory',
  progress: BackupProgress,
  result: BackupReport,
  run: async ({ engines, stopping }, { directory }, { onProgress }) => {
    const { directory: dataDirectory, log, clickhouse, isEmbedded } = engines
    if (!isEmbedded || dataDirectory === undefined || log.files === undefined)
      throw new UsageError(
        'This copies a service whose engines are all embedded; with KAFKA_BROKERS, CLICKHOUSE_URL or POSTGRES_URL ' +
          'back each server up with its own tools, in the order of docs/operators/backup.md.'
      )
    const target = targets.get(engines)
    if (target !== undefined)
      throw new FailureError(`A backup to ${target} is under way; wait for its end, or stop the service to end it.`)
    targets.set(engines, directory)
    try {
      const { backUp } = await import('./backup.js')
      const writes = await engines.writes()
      const needs = { directory: dataDirectory, log: log.files, clickhouse, writes, onProgress, signal: stopping }
      return await backUp(needs, directory)
    } finally {
      targets.delete(engines)
    }
  }
})
