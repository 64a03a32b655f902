import { errorMessage } from '@gamenet/schemas'
import type { Command } from 'commander'
import { FailureError, UsageError } from '../config.js'
import { type Erasure, type ErasureProgress, type ErasureReport, erase, listErasures } from '../operations/erase.js'
import { withData } from './reach.js'
import { addCommand, print, type Terminal, table } from './terminal.js'

type Options = { json?: boolean; list?: boolean; anyway?: boolean }

export function addForget(program: Command, terminal: Terminal): void {
  addCommand(
    program,
    'forget',
    'forget a user for good: profile, ratings, sightings, achievements; nothing brings them back'
  )
    .argument('[username]', 'of the site, in any spelling of its letters')
    .option('--list', 'print who was forgotten, as hashes of their names')
    .option('--anyway', 'also a name of which nothing is known: whoever names it later is not listened to')
    .action(async (username: string | undefined, options: Options) => {
      if (options.list === true) {
        if (username !== undefined) throw new UsageError('--list takes no username.')
        const forgettings = await withData(terminal, (operations) => operations.run(listErasures, {}))
        return print(terminal, options.json, forgettings, linesOf(forgettings))
      }
      if (username === undefined) throw new UsageError('Who is to be forgotten? Give a username, or --list.')
      const report = await withData(terminal, (operations) =>
        operations.run(
          erase,
          { username, anyway: options.anyway === true },
          { onProgress: progressOf(terminal, options) }
        )
      ).catch((error: unknown) => {
        if (error instanceof UsageError) throw error
        const reason = errorMessage(error)
        throw new FailureError(
          `The forgetting is not done; it goes on when a service starts, or now by the same command. ${reason}`
        )
      })
      print(terminal, options.json, report, [lineOf(report)])
      if (!report.isEntered) terminal.exitCode = 1
    })
}

const PHASES = {
  keys: 'throwing the key away',
  waiting: 'waiting until nobody reads the log with it any more',
  tables: 'cleaning the tables',
  files: 'cleaning the files'
} as const

/** A line that is written over on a terminal, a line for each phase elsewhere, nothing with --json. */
function progressOf(terminal: Terminal, options: Options): (progress: ErasureProgress) => void {
  let said = ''
  return ({ phase, done, total }) => {
    if (options.json === true) return
    const { isTTY } = terminal.errors
    const line = isTTY && total > 1 ? `${PHASES[phase]} (${done} of ${total})` : PHASES[phase]
    if (line === said) return
    said = line
    terminal.errors.write(isTTY ? `\r\x1b[K${line}` : `${line}\n`)
    if (isTTY && phase === 'files') terminal.errors.write('\r\x1b[K')
  }
}

function lineOf({ wasKnown, isEntered, rowsOfWrites, rowsOfTables }: ErasureReport): string {
  if (!isEntered)
    return 'Nothing is known of a user of this name, and nothing was done. Look at its spelling (upper and lower case are one); --anyway forgets it all the same: whoever names it later is then not listened to.'
  return wasKnown
    ? `Forgotten: ${rowsOfWrites} rows of the write side and ${rowsOfTables} of the tables are gone. What the log has can no longer be read.`
    : 'Nothing was known of this user; what pages and files say of them from now on is not listened to.'
}

function linesOf(forgettings: readonly Erasure[]): string[] {
  if (forgettings.length === 0) return ['Nobody was forgotten.']
  return table([
    ['FORGOTTEN AT', 'DONE AT', 'CAME BACK', 'NAME HASH'],
    ...forgettings.map(({ forgottenAt, doneAt, returnedAt, nameHash }) => [
      forgottenAt,
      doneAt ?? 'under way',
      returnedAt ?? '',
      nameHash
    ])
  ])
}
