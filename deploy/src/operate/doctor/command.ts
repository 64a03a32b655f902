import type { Command } from 'commander'
import { FailureError, UsageError } from '../../config.js'
import { noServiceLine, withData } from '../../reach.js'
import { addCommand, print, type Terminal, table } from '../../terminal/terminal.js'
import { type Check, doctor } from './operation.js'

export function addDoctor(program: Command, terminal: Terminal): void {
  addCommand(
    program,
    'doctor',
    'check configuration, engines, permissions, disk, clock, connections, links and saved questions'
  ).action(async ({ json = false }: { json?: boolean }) => {
    const checks = await checksOf(terminal)
    const failed = checks.filter(({ isOk }) => !isOk)
    print(terminal, json, checks, [
      failed.length === 0
        ? 'Nothing is wrong.'
        : `${failed.length} of ${checks.length} checks failed: ${failed.map(({ check }) => check).join(', ')}.`,
      ...table([
        ['CHECK', 'RESULT', 'FOUND'],
        ...checks.map(({ check, isOk, found }) => [check, isOk ? 'ok' : 'WRONG', found])
      ])
    ])
    if (failed.length > 0) terminal.exitCode = 1
  })
}

/**
 * Runs the checks of the running service, or on the engines of a stopped one. If they cannot be opened, that is the
 * last check.
 */
async function checksOf(terminal: Terminal): Promise<Check[]> {
  try {
    terminal.config()
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return [{ check: 'configuration', isOk: false, found: error.message }]
  }
  const configuration = { check: 'configuration', isOk: true, found: 'every variable has a valid value' }
  try {
    return await withData(terminal, async (operations, isRunning) => [
      configuration,
      { check: 'service', isOk: true, found: isRunning ? 'runs' : noServiceLine(terminal.config()) },
      ...(await operations.run(doctor, {}))
    ])
  } catch (error) {
    if (!(error instanceof FailureError || error instanceof UsageError)) throw error
    return [configuration, { check: 'service', isOk: false, found: error.message }]
  }
}
