import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { bytesText, durationText, errorMessage } from '@gamenet/schemas'
import type { Command } from 'commander'
import { type Config, FailureError, UsageError } from '../../config.js'
import { runningOperatorPort } from '../../data-directory/data-directory.js'
import { runShown } from '../../reach.js'
import { progressOfBytes } from '../../terminal/progress.js'
import { addCommand, counted, print, type Terminal } from '../../terminal/terminal.js'
import { draftOf, UNFINISHED_FILE } from './manifest.js'
import { backup } from './operation.js'

export function addBackup(program: Command, terminal: Terminal): void {
  addCommand(program, 'backup', 'copy all data of an embedded service, running or stopped')
    .argument('<dir>', 'target: a new or empty directory on the machine of the service')
    .action(async (dir: string, options: { json?: boolean }) => {
      if (dir === '') throw new UsageError('gamenet backup needs a new or empty directory; got "".')
      const config = terminal.config()
      const report = await runShown(
        terminal,
        options,
        backup,
        { directory: resolve(dir) },
        ({ phase, bytes, bytesTotal }) => progressOfBytes(phase, bytes, bytesTotal)
      ).catch(async (error: unknown) => {
        if (error instanceof UsageError) throw error
        const left = await unfinishedLine(config, resolve(dir))
        throw new FailureError(`No backup was made. ${errorMessage(error)}${left}`)
      })
      const size = `${counted(report.files, 'file')}, ${bytesText(report.bytes)}`
      print(terminal, options.json, report, [
        `Backed up to ${report.directory}: everything that was acknowledged before ${report.createdAt}; ${size}, in ` +
          `${durationText(report.tookMs / 1000)}.`,
        'It contains the keys of people and their data: protect it like the service itself.'
      ])
    })
}

/** Mentions the draft of a killed backup. Silent while a service runs, because the service may be writing it. */
async function unfinishedLine({ DATA_DIR, OPERATOR_URL }: Config, target: string): Promise<string> {
  const draft = draftOf(target)
  if (OPERATOR_URL !== undefined || !existsSync(join(draft, UNFINISHED_FILE))) return ''
  if ((await runningOperatorPort(DATA_DIR).catch(() => null)) !== undefined) return ''
  return ` ${draft} is unfinished: the next backup to the same target replaces it, and it may be removed.`
}
