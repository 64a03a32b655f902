import type { Command } from 'commander'
import { runShown, withData } from '../../reach.js'
import type { Progress } from '../../terminal/progress.js'
import { addCommand, counted, minuteOf, print, type Terminal, table } from '../../terminal/terminal.js'
import type { ImportRun, ImportUndoProgress } from './import-run.js'
import { listImports, undoImport } from './undo-operation.js'

/** `gamenet import list` and `gamenet import undo`. */
export function addImportUndo(importCommand: Command, terminal: Terminal): void {
  addCommand(importCommand, 'list', 'print every import, the newest first').action(
    async (_options: unknown, command: Command) => {
      const { json } = command.optsWithGlobals<{ json?: boolean }>()
      const runs = await withData(terminal, (operations) => operations.run(listImports, {}))
      print(terminal, json, runs, linesOf(runs))
    }
  )
  addCommand(importCommand, 'undo', 'undo an import: its events no longer count in any table')
    .argument('<importId>', 'as gamenet import list prints it')
    .action(async (importId: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<{ json?: boolean }>()
      const report = await runShown(terminal, options, undoImport, { importId }, progressOf)
      const line = report.alreadyDone
        ? `Import ${importId} was undone before; nothing was changed.`
        : `Import ${importId} is undone: ${counted(report.published, 'event')} of ${report.topic} no longer count.`
      print(terminal, options.json, report, [line])
    })
}

function linesOf(runs: readonly ImportRun[]): string[] {
  if (runs.length === 0) return ['There are no imports.']
  const stateOf = ({ retractedAt, isBeingRetracted, finished, isBeingPublished }: ImportRun) => {
    if (isBeingPublished) return 'being published'
    if (retractedAt === null) return finished ? 'finished' : 'interrupted'
    return isBeingRetracted ? `being undone since ${retractedAt}` : `undone ${retractedAt}`
  }
  const resume = runs.some((run) => stateOf(run) === 'interrupted')
    ? ['', 'The command of an interrupted import resumes it.']
    : []
  const lines = table([
    ['IMPORT', 'LAST EVENT', 'ROWS', 'EVENTS', 'REJECTED', 'STATE'],
    ...runs.map((run) => [
      ...[run.importId, minuteOf(run.newestAt), String(run.rowsRead), String(run.published), String(run.rejected)],
      `${stateOf(run)}: ${run.topic} of ${run.file}`
    ])
  ])
  return [...lines, ...resume]
}

function progressOf({ phase, done, total, etaSeconds }: ImportUndoProgress): Progress {
  return {
    label: phase,
    share: done / Math.max(1, total, done),
    details: [`${done} of ${counted(total, 'event')}`],
    etaSeconds
  }
}
