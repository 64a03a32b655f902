import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { errorMessage } from '@gamenet/schemas'
import type { Command } from 'commander'
import { draftOf, UNFINISHED_FILE } from '../backup/manifest.js'
import { type Config, FailureError, UsageError } from '../config.js'
import { runningOperatorUrl } from '../data-directory.js'
import { backup } from '../operations/backup.js'
import { showBytes } from './byte-progress.js'
import { withData } from './reach.js'
import { addCommand, print, type Terminal } from './terminal.js'

export function addBackup(program: Command, terminal: Terminal): void {
  addCommand(program, 'backup', 'copy all that an embedded service keeps, while it works or is stopped')
    .argument('<dir>', 'where to: a directory that is new or empty, on the machine of the service')
    .action(async (dir: string, options: { json?: boolean }) => {
      if (dir === '') throw new UsageError('gamenet backup takes a directory that is new or empty; got "".')
      const config = terminal.config()
      const progress = showBytes(terminal, options.json !== true)
      const report = await withData(terminal, (operations) =>
        operations.run(
          backup,
          { directory: resolve(dir) },
          { onProgress: ({ phase, bytes, bytesTotal }) => progress.update(phase, bytes, bytesTotal) }
        )
      )
        .catch(async (error: unknown) => {
          if (error instanceof UsageError) throw error
          const reason = errorMessage(error)
          throw new FailureError(`No backup was made. ${reason}${await leftLine(config, resolve(dir))}`)
        })
        .finally(() => progress.stop())
      const size = `${report.files} files, ${(report.bytes / 1e6).toFixed(1)} MB`
      print(terminal, options.json, report, [
        `Backed up to ${report.directory}: all that was acknowledged before ${report.createdAt}; ${size}, in ${(report.tookMs / 1000).toFixed(1)} s.`,
        'It has the keys of people and what they wrote: keep it as you keep the service.'
      ])
    })
}

/** What a service that was killed has left; one that runs may be at it for somebody else. */
async function leftLine({ DATA_DIR, OPERATOR_URL }: Config, target: string): Promise<string> {
  const draft = draftOf(target)
  if (OPERATOR_URL !== undefined || !existsSync(join(draft, UNFINISHED_FILE))) return ''
  if ((await runningOperatorUrl(DATA_DIR).catch(() => null)) !== undefined) return ''
  return ` ${draft} is what was begun: the next backup to the same place replaces it, and it may be removed.`
}
