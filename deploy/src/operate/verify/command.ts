import { bytesText, durationText } from '@gamenet/schemas'
import type { Command } from 'commander'
import { FilesDamaged } from '../../config.js'
import { runShown } from '../../reach.js'
import { progressOfBytes } from '../../terminal/progress.js'
import { addCommand, print, type Terminal } from '../../terminal/terminal.js'
import { verify } from './operation.js'

type VerifyFlags = { json?: boolean; deep?: boolean }

export function addVerify(program: Command, terminal: Terminal): void {
  addCommand(program, 'verify', 'verify the checksums of all stored data; exit code 1 when something is damaged')
    .option('--deep', 'also compare each read table with what its events make, which takes as long as all rebuilds')
    .action(async ({ json = false, deep = false }: VerifyFlags) => {
      const role = deep ? 'offline' : 'verify'
      // The findings say everything.
      const config = () => ({ ...terminal.config(), LOG_LEVEL: 'silent' as const })
      const report = await runShown(
        { ...terminal, config },
        { json, role },
        verify,
        { deep },
        ({ phase, bytes, bytesTotal }) => progressOfBytes(phase, bytes, bytesTotal)
      ).catch(async (error: unknown) => {
        if (!(error instanceof FilesDamaged)) throw error
        const { verifyApart } = await import('./verify-apart.js')
        return await verifyApart(config())
      })
      const { findings, bytes, tookMs, notChecked } = report
      const read = `${bytesText(bytes)} were read in ${durationText(tookMs / 1000)}`
      const lines = findings.flatMap(({ part, what, cost, repair }) => [
        `${part}: ${what}`,
        `  cost: ${cost}`,
        `  repair: ${repair}`
      ])
      print(terminal, json, report, [
        ...lines,
        ...(notChecked.length === 0 ? [] : [`Not checked: ${notChecked.join(', ')}.`]),
        findings.length === 0 ? `Nothing is damaged; ${read}.` : `${findings.length} findings; ${read}.`
      ])
      if (findings.length > 0) terminal.exitCode = 1
    })
}
