import type { Command, CommanderError } from 'commander'
import { UsageError } from '../config.js'

/** Makes a command and its subcommands explain wrong usage: what was found, what was expected, how to get help. */
export function explainWrongUsage(command: Command): void {
  command.configureOutput({ outputError: () => undefined })
  command.exitOverride((error) => {
    // Help was requested, or printed for a command that needs a subcommand.
    if (error.exitCode === 0 || error.code === 'commander.help') throw error
    throw new UsageError(`${sentenceOf(command, error)} \`${pathOf(command)} --help\` explains it.`)
  })
  for (const each of command.commands) explainWrongUsage(each)
}

/** Ends a small program with exit code 2 after wrong usage; commander has printed the reason. */
export function endOnWrongUsage({ exitCode }: CommanderError): never {
  process.exit(exitCode === 0 ? 0 : 2)
}

/**
 * Rewrites `help rebuild plan` and `rebuild help plan` to `rebuild plan --help`; returns other arguments unchanged.
 * @throws {UsageError} when it names an unknown command
 */
export function helpAsOption(program: Command, args: readonly string[]): readonly string[] {
  const at = args.indexOf('help')
  const names = args.filter((name) => name !== 'help')
  const before = commandAt(program, args.slice(0, Math.max(0, at)))
  // A command without subcommands takes `help` as its argument: it may be a username.
  const isHelp = at >= 0 && before.unknown === undefined && before.command.commands.length > 0
  if (!isHelp || names.some((name) => name.startsWith('-'))) return args
  const { command, unknown } = commandAt(program, names)
  if (unknown === undefined) return [...names, '--help']
  const there = command.commands.length === 0 ? 'it has none' : `there are ${commandsOf(command)}`
  const path = pathOf(command)
  throw new UsageError(`${path} has no command ${JSON.stringify(unknown)}; ${there}. \`${path} --help\` explains it.`)
}

/** Returns the command with these names, or the last known command and the first unknown name. */
function commandAt(program: Command, names: readonly string[]): { command: Command; unknown?: string } {
  let command = program
  for (const name of names) {
    const found = command.commands.find((each) => each.name() === name || each.aliases().includes(name))
    if (found === undefined) return { command, unknown: name }
    command = found
  }
  return { command }
}

function sentenceOf(command: Command, { code, message }: CommanderError): string {
  const path = pathOf(command)
  const [said = ''] = message.replace(/^error: /, '').split('\n')
  const name = /'([^']*)'/.exec(said)?.[1] ?? ''
  const alike = /\(Did you mean (.+)\?\)/.exec(message)?.[1]
  const meant = alike === undefined ? '' : ` (did you mean ${alike}?)`
  switch (code) {
    case 'commander.unknownCommand':
      return (
        `${path} has no command ${JSON.stringify(command.args[0] ?? name)}${meant}; there are ` +
        `${commandsOf(command)}.`
      )
    case 'commander.unknownOption':
      return `${path} has no option ${name}${meant}; ${optionsOf(command)}.`
    case 'commander.missingArgument':
      return `${path} needs <${name}>, which was not given; expected: ${usageOf(command)}.`
    case 'commander.excessArguments':
      return (
        `${path} takes ${countOf(command.registeredArguments.length)} and got ${command.args.length}: ` +
        `${command.args.map((arg) => JSON.stringify(arg)).join(' ')}; expected: ${usageOf(command)}.`
      )
    case 'commander.optionMissingArgument':
      return `${path}: the option ${name} needs a value, and none was given.`
    case 'commander.invalidArgument':
      return `${path}: ${choiceOf(said)}`
    default:
      return `${path}: ${said.replace(/\.?$/, '.')}`
  }
}

/** Returns the names of a command and its parents, as a user types them. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}

const usageOf = (command: Command): string => `${pathOf(command)} ${command.usage()}`

const commandsOf = (command: Command): string => command.commands.map((each) => each.name()).join(', ')

/** Options of commands that take all else from environment variables. */
const OPTIONS_OF_ROLES: ReadonlySet<string> = new Set(['--json', '--accept-older'])

function optionsOf({ options, parent }: Command): string {
  if (parent === null || options.length === 0)
    return 'its commands have options; settings are environment variables (docs/configuration.md)'
  const flags = options.map((each) => each.flags).join(', ')
  if (!options.every(({ long }) => OPTIONS_OF_ROLES.has(long ?? ''))) return `it takes ${flags}`
  const only = options.length === 1 ? 'only option is' : 'only options are'
  return `its ${only} ${flags}; settings are environment variables (docs/configuration.md)`
}

function countOf(most: number): string {
  if (most === 0) return 'no argument'
  return most === 1 ? 'one argument' : `at most ${most} arguments`
}

/** Returns the sentence about a value outside its list. */
function choiceOf(said: string): string {
  const found = /value '(.*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\.$/.exec(said)
  if (found === null) return said
  const [, value, argument, choices] = found
  return `<${argument}> cannot be ${JSON.stringify(value)}; expected one of ${choices}.`
}
