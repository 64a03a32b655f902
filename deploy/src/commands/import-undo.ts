import { durationText } from '@gamenet/schemas'
import cliProgress from 'cli-progress'
import type { Command } from 'commander'
import { type ImportRun, type ImportUndoProgress, listImports, undoImport } from '../operations/import-undo.js'
import { barFormat } from './bar-format.js'
import { withData } from './reach.js'
import { addCommand, print, type Terminal, table } from './terminal.js'

const PLAIN_PROGRESS_MS = 5000

/** `gamenet import list` and `gamenet import undo`. */
export function addImportUndo(importCommand: Command, terminal: Terminal): void {
  addCommand(importCommand, 'list', 'print every import, the newest first').action(
    async (_options: unknown, command: Command) => {
      const { json } = command.optsWithGlobals<{ json?: boolean }>()
      const runs = await withData(terminal, (operations) => operations.run(listImports, {}))
      print(terminal, json, runs, linesOf(runs))
    }
  )
  addCommand(importCommand, 'undo', 'take an import back: all tables read as if it had not been')
    .argument('<importId>', 'as gamenet import list prints it')
    .action(async (importId: string, _options: unknown, command: Command) => {
      const { json } = command.optsWithGlobals<{ json?: boolean }>()
      const progress = showProgress(terminal, json === true)
      const report = await withData(terminal, (operations) =>
        operations.run(undoImport, { importId }, { onProgress: progress.update })
      ).finally(progress.stop)
      const line = report.alreadyDone
        ? `Import ${importId} was taken back before; nothing was done.`
        : `Import ${importId} is taken back: ${report.published} events of ${report.topic} count no more.`
      print(terminal, json, report, [line])
    })
}

function linesOf(runs: readonly ImportRun[]): string[] {
  if (runs.length === 0) return ['Nothing was imported.']
  const stateOf = ({ retractedAt, isBeingRetracted, finished, isBeingPublished }: ImportRun) => {
    if (isBeingPublished) return 'being published'
    if (retractedAt === null) return finished ? 'finished' : 'cut off'
    return isBeingRetracted ? `being taken back since ${retractedAt}` : `taken back ${retractedAt}`
  }
  return table([
    ['IMPORT', 'TOPIC', 'LAST NEWS', 'ROWS', 'EVENTS', 'REJECTED', 'STATE', 'FILE'],
    ...runs.map((run) => [
      ...[run.importId, run.topic, run.newestAt, String(run.rowsRead), String(run.published), String(run.rejected)],
      ...[stateOf(run), run.file]
    ])
  ])
}

function progressLine({ phase, done, total, etaSeconds }: ImportUndoProgress): string {
  const left = etaSeconds === null ? '' : `, ${durationText(etaSeconds)} left`
  return `${phase}: ${done} of ${total} events${left}`
}

/** A bar on a terminal, plain lines now and then elsewhere, nothing with --json. */
function showProgress(terminal: Terminal, isSilent: boolean) {
  if (isSilent) return { update: () => {}, stop: () => {} }
  if (terminal.errors.isTTY) {
    const bar = new cliProgress.SingleBar(
      {
        format: barFormat('{phase} {bar} {percentage} % | {value} of {total} events | {left} left'),
        clearOnComplete: true,
        stream: terminal.errors
      },
      cliProgress.Presets.shades_classic
    )
    bar.start(1, 0, { phase: 'waiting', left: '?' })
    const update = ({ phase, done, total, etaSeconds }: ImportUndoProgress) => {
      bar.setTotal(Math.max(1, total))
      bar.update(done, { phase, left: etaSeconds === null ? '?' : durationText(etaSeconds) })
    }
    return { update, stop: () => bar.stop() }
  }
  let saidAt = Date.now()
  const update = (progress: ImportUndoProgress) => {
    if (Date.now() - saidAt < PLAIN_PROGRESS_MS) return
    saidAt = Date.now()
    terminal.errors.write(`${progressLine(progress)}\n`)
  }
  return { update, stop: () => {} }
}
