import type { Command } from 'commander'
import { UsageError } from '../../config.js'
import { runShown, withData } from '../../reach.js'
import { dumpOf } from '../../terminal/printable-text.js'
import type { Progress } from '../../terminal/progress.js'
import { addCommand, print, type Terminal, table, wholeNumber } from '../../terminal/terminal.js'
import {
  DEAD_LETTER_CHOICE_MAX,
  DEAD_LETTER_LIST_MAX,
  type DeadLetterChoice,
  type DeadLetterContent,
  type DeadLetterList,
  type DeadLetterPosition,
  dropDeadLetters,
  listDeadLetters,
  type Position,
  type RetryProgress,
  type RetryReport,
  retryDeadLetters,
  showDeadLetter
} from './operation.js'

const LIST_LIMIT = 100

type Options = { json?: boolean; topic?: string; all?: boolean }
type ListOptions = { json?: boolean; topic?: string; limit: string; dropped?: boolean }

export function addDeadLetters(program: Command, terminal: Terminal): void {
  const command = program
    .command('dead-letters')
    .alias('stored')
    .description('unreadable messages: inspect, retry or drop them')
  addLooking(command, terminal)
  addDeciding(command, terminal)
}

function addLooking(parent: Command, terminal: Terminal): void {
  addCommand(parent, 'list', 'print position, time, size and reason of each')
    .option('--topic <topic>', 'of this topic only')
    .option('--limit <messages>', 'maximum number to print', String(LIST_LIMIT))
    .option('--dropped', 'print dropped ones instead')
    .action(async ({ json, topic, limit, dropped = false }: ListOptions) => {
      const query = {
        limit: wholeNumber('--limit', limit, 1, DEAD_LETTER_LIST_MAX),
        dropped,
        ...(topic === undefined ? {} : { topic })
      }
      const list = await withData(terminal, (operations) => operations.run(listDeadLetters, query))
      print(terminal, json, list, linesOfList(list, dropped))
    })
  addCommand(parent, 'show', 'one message: its reason, headers, key and bytes')
    .argument('<topic>', 'as `gamenet dead-letters list` prints it')
    .argument('<position>', 'epoch/partition/offset')
    .action(async (topic: string, position: string, { json }: Options) => {
      const at = { topic, ...positionOf(position) }
      const content = await withData(terminal, (operations) => operations.run(showDeadLetter, at))
      print(terminal, json, content, linesOfContent(content))
    })
}

function addDeciding(parent: Command, terminal: Terminal): void {
  choosing(
    parent,
    'retry',
    'validate them with the schemas of this program; exit code 1 when some are still invalid'
  ).action(async (topic: string | undefined, positions: readonly string[], options: Options) => {
    const choice = choiceOf(topic, positions, options)
    const report = await runShown(terminal, options, retryDeadLetters, choice, progressOf)
    print(terminal, options.json, report, linesOfRetry(report))
    if (report.refused > 0 || report.behind.length > 0) terminal.exitCode = 1
  })
  choosing(parent, 'drop', 'drop them; they stay dropped when the log is read again').action(
    async (topic: string | undefined, positions: readonly string[], options: Options) => {
      const choice = choiceOf(topic, positions, options)
      const report = await withData(terminal, (operations) => operations.run(dropDeadLetters, choice))
      print(terminal, options.json, report, [`${report.dropped} dropped.`])
    }
  )
}

function choosing(parent: Command, name: string, description: string): Command {
  return addCommand(parent, name, description)
    .argument('[topic]', 'as `gamenet dead-letters list` prints it')
    .argument('[positions...]', 'epoch/partition/offset each')
    .option('--topic <topic>', 'with --all: the topic')
    .option('--all', 'every dead letter of the topic')
}

function choiceOf(topic: string | undefined, positions: readonly string[], options: Options): DeadLetterChoice {
  const { topic: allOf, all = false } = options
  if (all && allOf !== undefined && topic === undefined) return { topic: allOf, positions: 'all' }
  if (all || allOf !== undefined || topic === undefined || positions.length === 0)
    throw new UsageError('Give either a topic and positions (title-count 1/0/17 1/0/23), or --topic title-count --all.')
  if (positions.length > DEAD_LETTER_CHOICE_MAX)
    throw new UsageError(
      `${positions.length} positions were given; at most ${DEAD_LETTER_CHOICE_MAX} can be named at once. Give fewer, ` +
        `or all by --topic ${topic} --all.`
    )
  return { topic, positions: positions.map(positionOf) }
}

function positionOf(text: string): Position {
  const [, epoch = '', partition = '', offset = ''] = /^(\d{1,5})\/(\d{1,5})\/(\d{1,15})$/.exec(text) ?? []
  if (offset === '' || Number(epoch) > 65_535 || Number(partition) > 65_535)
    throw new UsageError(`A position is epoch/partition/offset, such as 1/0/17; got ${JSON.stringify(text)}.`)
  return { epoch: Number(epoch), partition: Number(partition), offset: Number(offset) }
}

function progressOf({ retried, passedOver, refused }: RetryProgress): Progress {
  return { label: 'retrying', details: [`${retried + passedOver + refused} messages`] }
}

function linesOfList({ messages, total }: DeadLetterList, isDropped: boolean): string[] {
  if (total === 0) return [isDropped ? 'Nothing was dropped.' : 'There are no dead letters.']
  const rows = messages.map((message) => [
    message.topic,
    placeOf(message),
    message.storedAt,
    String(message.bytes),
    message.reason
  ])
  const more = total - messages.length
  return [
    ...table([['TOPIC', 'POSITION', 'STORED AT', 'BYTES', 'REASON'], ...rows]),
    ...(more > 0 ? [`and ${more} more; use --topic and --limit`] : [])
  ]
}

function linesOfContent(content: DeadLetterContent): string[] {
  const headers = Object.entries(content.headers).map(([name, value]) => [`  ${name}`, value])
  return [
    `${content.topic} ${placeOf(content)}, ${content.state} since ${content.storedAt}`,
    `reason: ${content.reason}`,
    `key: ${content.key}`,
    ...(headers.length === 0 ? ['no headers'] : ['headers:', ...table(headers)]),
    `${content.bytes} bytes:`,
    ...dumpOf(Buffer.from(content.value, 'base64'))
  ]
}

function linesOfRetry({ retried, passedOver, refused, refusals, behind }: RetryReport): string[] {
  if (retried + passedOver + refused + behind.length === 0) return ['None of these is a dead letter.']
  const more = refused - refusals.length
  return [
    `${retried} are valid now and stored at their positions, ${refused} are still invalid.`,
    ...(passedOver === 0 ? [] : [`${passedOver} concern erased users or undone imports, and are skipped.`]),
    ...refusals.map((each) => `  ${each.topic} ${placeOf(each)}: ${each.reason}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...(behind.length === 0
      ? []
      : [`Not in all answers yet: ${behind.join(', ')} have not consumed them; \`gamenet status\` shows why.`])
  ]
}

function placeOf({ epoch, partition, offset }: Omit<DeadLetterPosition, 'topic'>): string {
  return `${epoch}/${partition}/${offset}`
}
