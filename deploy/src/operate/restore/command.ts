import { bytesText, durationText } from '@gamenet/schemas'
import type { Command } from 'commander'
import { type Config, UsageError } from '../../config.js'
import { progressOfBytes, showProgress } from '../../terminal/progress.js'
import { addCommand, counted, print, type Terminal } from '../../terminal/terminal.js'

export function addRestore(program: Command, terminal: Terminal): void {
  addCommand(program, 'restore', 'put a backup into DATA_DIR, which must be new or empty')
    .argument('<dir>', 'a directory that `gamenet backup` wrote')
    .option('--ledger <path>', 'users erased since: the data directory that is replaced, or its erasures.json')
    .option('--to-postgres', 'also put the write side into the empty database of POSTGRES_URL')
    .action(async (dir: string, options: { json?: boolean; ledger?: string; toPostgres?: boolean }) => {
      const config = terminal.config()
      refuseServers(config, options.toPostgres === true)
      const display = showProgress(terminal, options.json !== true)
      const { restore } = await import('./restore.js')
      const report = await restore({
        backup: dir,
        dataDirectory: config.DATA_DIR,
        ledger: options.ledger,
        postgresUrl: options.toPostgres === true ? config.POSTGRES_URL : undefined,
        onProgress: (bytes, bytesTotal) => display.update(progressOfBytes('copying', bytes, bytesTotal)),
        signal: new AbortController().signal
      }).finally(display.stop)
      const size = `${counted(report.files, 'file')}, ${bytesText(report.bytes)}`
      print(terminal, options.json, report, [
        `Restored ${report.dataDirectory} as of ${report.createdAt}: ${size}, in ` +
          `${durationText(report.tookMs / 1000)}.`,
        erasureLine(report.toErase, report.createdAt),
        ...(report.movedRows === null ? [] : [`PostgreSQL has ${counted(report.movedRows, 'row')} of the write side.`])
      ])
    })
}

function erasureLine(toErase: number | null, createdAt: string): string {
  if (toErase === null)
    return `Users erased after ${createdAt} are in the restored data: erase them again, or restore with --ledger.`
  if (toErase === 0) return 'The ledger has no erasures since the backup.'
  return `${toErase} erased since are erased again when the service starts, before it answers.`
}

/** Refuses settings with servers: a service with them would not read the restored files. */
function refuseServers(config: Config, toPostgres: boolean): void {
  if (toPostgres && config.POSTGRES_URL === undefined)
    throw new UsageError('--to-postgres needs POSTGRES_URL, the address of an empty database.')
  const servers = ['KAFKA_BROKERS', 'CLICKHOUSE_URL', ...(toPostgres ? [] : ['POSTGRES_URL' as const])] as const
  const given = servers.filter((name) => config[name] !== undefined)
  if (given.length === 0) return
  throw new UsageError(
    `A backup is restored for a service whose engines are all embedded; ${given.join(', ')} is set. Unset it, or ` +
      `restore each server with its own tools (docs/operators/backup.md).`
  )
}
