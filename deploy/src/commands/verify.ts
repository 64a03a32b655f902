import type { Command } from 'commander'
import { verify } from '../operations/verify.js'
import { showBytes } from './byte-progress.js'
import { plain } from './bytes-text.js'
import { withData } from './reach.js'
import { addCommand, print, type Terminal } from './terminal.js'

export function addVerify(program: Command, terminal: Terminal): void {
  addCommand(program, 'verify', 'read everything that is kept, by checksums; exit code 1 when something is damaged')
    .option('--repair', 'repair what can be made again, of a stopped service')
    .action(async ({ json, repair = false }: { json?: boolean; repair?: boolean }) => {
      const progress = showBytes(terminal, json !== true)
      const report = await withData(terminal, (operations) =>
        operations.run(
          verify,
          { repair },
          { onProgress: ({ phase, bytes, bytesTotal }) => progress.update(phase, bytes, bytesTotal) }
        )
      ).finally(() => progress.stop())
      const { findings, bytes, tookMs, notChecked } = report
      const read = `${(bytes / 1e6).toFixed(1)} MB were read in ${(tookMs / 1000).toFixed(1)} s`
      const lines = findings.flatMap(({ part, what, cost, repair, isRepaired }) => [
        `${part}: ${plain(what)}`,
        `  cost: ${plain(cost)}`,
        `  ${isRepaired ? 'repaired' : 'repair'}: ${plain(repair)}`
      ])
      print(terminal, json, report, [
        ...lines,
        ...(notChecked.length === 0 ? [] : [`Not checked: ${notChecked.join(', ')}; a server checks its own files.`]),
        findings.length === 0 ? `Nothing is damaged; ${read}.` : `${findings.length} findings; ${read}.`
      ])
      if (findings.length > 0) terminal.exitCode = 1
    })
}
