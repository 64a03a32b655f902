import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { errorCode, errorMessage, isFailure, messageWithCause, Refusal } from '@gamenet/schemas'
import { Command, CommanderError } from 'commander'
import { DATA_DIR_DEFAULT, FailureError, readConfig, UsageError } from './config.js'
import { isOfFullDisk, saysUnwritable } from './data-directory/disk-errors.js'
import { fileFailure } from './data-directory/file-failure.js'
import { addBackup } from './operate/backup/command.js'
import { addDeadLetters } from './operate/dead-letters/command.js'
import { addDoctor } from './operate/doctor/command.js'
import { addErase } from './operate/erase/command.js'
import { addExport } from './operate/export/command.js'
import { addGap } from './operate/gap/command.js'
import { addImport } from './operate/import/command.js'
import { addMigrate } from './operate/migrate/command.js'
import { addRebuild } from './operate/rebuild/command.js'
import { addRestore } from './operate/restore/command.js'
import { addScrape } from './operate/scrape/command.js'
import { addSql } from './operate/sql/command.js'
import { addStatus } from './operate/status/command.js'
import { addVerify } from './operate/verify/command.js'
import { addRoles } from './run/roles.js'
import { addStart } from './run/start-command.js'
import { plainLines } from './terminal/printable-text.js'
import type { Terminal } from './terminal/terminal.js'
import { explainWrongUsage, helpAsOption } from './terminal/wrong-usage.js'
import { VERSION } from './version.js'

/**
 * Runs the command line.
 * @returns the exit code: 0 done, 1 failed, 2 wrong usage
 */
export async function runProgram(options: {
  args: readonly string[]
  environment: Readonly<Record<string, string | undefined>>
  input: Readable
  output: WriteStream
  errors: WriteStream
}): Promise<number> {
  const { args, environment, input, output, errors } = options
  const config = () => readConfig(environment)
  const terminal: Terminal = { input, output, errors, config, exitCode: 0 }
  const program = new Command('gamenet')
    .description('Statistics of an online game network: one service, and the commands to run it.')
    .version(VERSION, '--version', 'print the version of the program')
    .showSuggestionAfterError()
    .configureOutput({ writeOut: (text) => output.write(text), writeErr: (text) => errors.write(text) })
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 failed, 2 wrong usage, 130 Ctrl-C. Configuration: docs/configuration.md.'
    )
  for (const add of [
    addStart,
    addRoles,
    addMigrate,
    addScrape,
    addImport,
    addExport,
    addErase,
    addGap,
    addRebuild,
    addDeadLetters,
    addBackup,
    addRestore,
    addVerify,
    addSql,
    addStatus,
    addDoctor
  ])
    add(program, terminal)
  for (const command of program.commands) command.copyInheritedSettings(program)
  explainWrongUsage(program)
  try {
    await program.parseAsync(helpAsOption(program, args), { from: 'user' })
    return terminal.exitCode
  } catch (error) {
    const path = resolve(environment.DATA_DIR ?? DATA_DIR_DEFAULT)
    return await exitCodeOf((await diskFailure(path, error)) ?? fileFailure(error, path) ?? error, terminal)
  }
}

/** Returns the failure for an unexpected error of a full or read-only disk. */
async function diskFailure(path: string, error: unknown): Promise<FailureError | undefined> {
  const isExpected = [FailureError, UsageError, Refusal, CommanderError].some((each) => error instanceof each)
  if (isExpected || !saysUnwritable(error)) return undefined
  const { unwritableDisk } = await import('./data-directory/unwritable-disk.js')
  return await unwritableDisk(path, error)
}

/** Says on standard error what failed; returns the exit code. */
async function exitCodeOf(error: unknown, terminal: Terminal): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  terminal.errors.write(`${await textOf(error)}\n`)
  if (error instanceof UsageError) return 2
  return error instanceof FailureError ? error.exitCode : 1
}

async function textOf(error: unknown): Promise<string> {
  const message = plainLines(errorMessage(error))
  if (error instanceof UsageError || error instanceof FailureError || isOfFullDisk(error)) return message
  const settings = settingsOf(error)
  if (settings !== undefined)
    return `${sentenceOf(plainLines(messageWithCause(error)))} Check ${settings}, and whether it runs.`
  if (await isOfEngine(error))
    return `An engine failed: ${sentenceOf(message)} \`gamenet verify\` shows whether its files are damaged.`
  return `Unexpected error: ${message}`
}

const sentenceOf = (text: string): string => (/[.)]$/.test(text) ? text : `${text}.`)

/** Returns the variables that say where an unavailable engine is, and how it is reached. */
function settingsOf(error: unknown): string | undefined {
  if (isFailure(error, 'log_unreachable')) return 'KAFKA_BROKERS, KAFKA_SSL and KAFKA_SASL_*'
  if (!(error instanceof Refusal)) return undefined
  return error.details.includes('PostgreSQL') ? 'POSTGRES_URL' : 'CLICKHOUSE_URL'
}

/** Returns whether an error is ClickHouse's or PostgreSQL's about a statement. */
async function isOfEngine(error: unknown): Promise<boolean> {
  const { ClickHouseError } = await import('@gamenet/engines')
  return error instanceof ClickHouseError || /^[0-9A-Z]{5}$/.test(errorCode(error))
}
