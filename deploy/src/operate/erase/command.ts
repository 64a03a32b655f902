import { errorMessage } from '@gamenet/schemas'
import type { Command } from 'commander'
import { FailureError, UsageError } from '../../config.js'
import { runShown, withData } from '../../reach.js'
import type { Progress } from '../../terminal/progress.js'
import { addCommand, counted, print, type Terminal, table } from '../../terminal/terminal.js'
import type { ErasureProgress, ErasureReport } from './erasure-report.js'
import { type Erasure, erase, listErasures } from './operation.js'

type Options = { json?: boolean; list?: boolean; anyway?: boolean }

export function addErase(program: Command, terminal: Terminal): void {
  addCommand(
    program,
    'erase',
    'permanently erase a user: profile, ratings, sightings, achievements; it cannot be undone'
  )
    .argument('[username]', 'of the site; case does not matter')
    .option('--list', 'print past erasures, as hashes of the usernames')
    .option('--anyway', 'also for a username without stored data: it is ignored from now on')
    .action(async (username: string | undefined, options: Options) => {
      if (options.list === true) {
        if (username !== undefined) throw new UsageError('--list takes no username.')
        const erasures = await withData(terminal, (operations) => operations.run(listErasures, {}))
        return print(terminal, options.json, erasures, linesOf(erasures))
      }
      if (username === undefined) throw new UsageError('No username was given; give one, or --list.')
      const input = { username, anyway: options.anyway === true }
      // After the first phase the ledger has the erasure.
      let isRecorded = false
      const shown = (progress: ErasureProgress) => {
        isRecorded ||= progress.phase !== 'keys'
        return progressOf(progress)
      }
      const report = await runShown(terminal, options, erase, input, shown).catch((error: unknown) => {
        if (error instanceof UsageError) throw error
        throw new FailureError(
          isRecorded
            ? `The erasure is recorded and not complete; a running service completes it, a stopped one when it ` +
                `starts. ${errorMessage(error)}`
            : `Nothing was erased; repeat the command once this is solved: ${errorMessage(error)}`
        )
      })
      print(terminal, options.json, report, [lineOf(report)])
      if (!report.isEntered) terminal.exitCode = 1
    })
}

const PHASES = {
  keys: 'destroying the key',
  waiting: 'waiting for readers of the log that still have the keys',
  tables: 'cleaning the tables',
  files: 'cleaning the files'
} as const

function progressOf({ phase, done, total }: ErasureProgress): Progress {
  return { label: PHASES[phase], details: total > 1 ? [`${done} of ${total}`] : [] }
}

function lineOf({ wasKnown, isEntered, rowsOfWrites, rowsOfTables }: ErasureReport): string {
  if (!isEntered)
    return (
      'Nothing is stored about a user of this name; nothing was changed. Check the spelling (case does not matter); ' +
      'with --anyway, the name is ignored in pages and files from now on.'
    )
  return wasKnown
    ? `Erased: ${counted(rowsOfWrites, 'row')} of the write side and ${counted(rowsOfTables, 'row')} of the tables. ` +
        `The user's events in the log can no longer be read.`
    : 'Nothing was stored about this user; the name is ignored in pages and files from now on.'
}

function linesOf(erasures: readonly Erasure[]): string[] {
  if (erasures.length === 0) return ['There are no erasures.']
  return table([
    ['ERASED AT', 'DONE AT', 'RETURNED', 'NAME HASH'],
    ...erasures.map(({ erasedAt, doneAt, returnedAt, nameHash }) => [
      erasedAt,
      doneAt ?? 'under way',
      returnedAt ?? '',
      nameHash
    ])
  ])
}
