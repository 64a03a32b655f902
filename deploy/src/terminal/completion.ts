import { Argument, type Command } from 'commander'
import type { Terminal } from './terminal.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const

export function addCompletion(program: Command, terminal: Terminal): void {
  program
    .command('completion')
    .description('print the completion of commands for a shell, as in: source <(gamenet completion bash)')
    .addArgument(new Argument('<shell>', 'the shell that reads it').choices(SHELLS))
    .action((shell: (typeof SHELLS)[number]) => {
      terminal.output.write(SCRIPTS[shell](completionsOf(program)))
    })
}

/** What may follow the names of a command. */
type Completion = {
  /** The command's names, without the program's: `rebuild plan`. */
  readonly path: string
  readonly commands: readonly string[]
  /** Long options, and values of arguments with a fixed list. */
  readonly words: readonly string[]
}

/** Returns the completions of a command and its subcommands. */
function completionsOf(command: Command, path: readonly string[] = []): Completion[] {
  const words = [
    ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
    ...command.options.flatMap(({ long }) => long ?? []),
    '--help'
  ]
  const own = { path: path.join(' '), commands: command.commands.map((each) => each.name()), words }
  return [own, ...command.commands.flatMap((each) => completionsOf(each, [...path, each.name()]))]
}

const SCRIPTS = {
  bash: bashScript,
  zsh: (all: readonly Completion[]) => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(all)}`,
  fish: fishScript
}

/**
 * Files complete where no word of the command fits. In zsh, `path` is PATH, and the length of a slice needs `$((…))`.
 */
function bashScript(all: readonly Completion[]): string {
  const paths = all.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`)
  return `_gamenet() {
  local found='' next word words=''
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    next="\${found:+$found }$word"
    case "$next" in
      ${paths.join(' | ')}) found="$next" ;;
    esac
  done
  case "$found" in
${all.map(({ path, commands, words }) => `    '${path}') words='${[...commands, ...words].join(' ')}' ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _gamenet gamenet
`
}

function fishScript(all: readonly Completion[]): string {
  const lines = all.flatMap(({ path, commands, words }) => {
    const names = path === '' ? [] : path.split(' ')
    const conditions = [
      ...names.map((name) => `__fish_seen_subcommand_from ${name}`),
      ...(commands.length === 0 ? [] : [`not __fish_seen_subcommand_from ${commands.join(' ')}`])
    ]
    return `complete -c gamenet -n '${conditions.join('; and ')}' -a '${[...commands, ...words].join(' ')}'`
  })
  return `${lines.join('\n')}\n`
}
