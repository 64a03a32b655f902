import type { Command } from 'commander'
import { UsageError } from '../config.js'
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
} from '../operations/dead-letters.js'
import { dumpOf, plain } from './bytes-text.js'
import { withData } from './reach.js'
import { addCommand, print, type Terminal, table } from './terminal.js'

const LIST_LIMIT = 100

type Options = { json?: boolean; topic?: string; all?: boolean }
type ListOptions = { json?: boolean; topic?: string; limit: string; dropped?: boolean }

export function addDeadLetters(program: Command, terminal: Terminal): void {
  const command = program
    .command('parked')
    .description('messages that could not be read: look at them, judge them anew, or give them up')
  addLooking(command, terminal)
  addDeciding(command, terminal)
}

function addLooking(parent: Command, terminal: Terminal): void {
  addCommand(parent, 'list', 'which there are, where, since when, how large, and why they could not be read')
    .option('--topic <topic>', 'of one topic')
    .option('--limit <messages>', 'so many at most', String(LIST_LIMIT))
    .option('--dropped', 'those that were dropped instead')
    .action(async ({ json, topic, limit, dropped = false }: ListOptions) => {
      const query = {
        limit: limitOf(limit),
        dropped,
        ...(topic === undefined ? {} : { topic })
      }
      const list = await withData(terminal, (operations) => operations.run(listDeadLetters, query))
      print(terminal, json, list, linesOfList(list, dropped))
    })
  addCommand(parent, 'show', 'one message: its reason, headers, key and bytes')
    .argument('<topic>', 'as `gamenet parked list` gives it')
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
    'judge them by the schemas of this program; exit code 1 when some still cannot be read'
  ).action(async (topic: string | undefined, positions: readonly string[], options: Options) => {
    const choice = choiceOf(topic, positions, options)
    const report = await withData(terminal, (operations) =>
      operations.run(retryDeadLetters, choice, { onProgress: progressOf(terminal, options) })
    )
    print(terminal, options.json, report, linesOfRetry(report))
    if (report.refused > 0 || report.behind.length > 0) terminal.exitCode = 1
  })
  choosing(parent, 'drop', 'give them up; they stay dropped when the log is read again').action(
    async (topic: string | undefined, positions: readonly string[], options: Options) => {
      const choice = choiceOf(topic, positions, options)
      const report = await withData(terminal, (operations) => operations.run(dropDeadLetters, choice))
      print(terminal, options.json, report, [`${report.dropped} dropped.`])
    }
  )
}

function choosing(parent: Command, name: string, description: string): Command {
  return addCommand(parent, name, description)
    .argument('[topic]', 'as `gamenet parked list` gives it')
    .argument('[positions...]', 'epoch/partition/offset each')
    .option('--topic <topic>', 'with --all: of this topic')
    .option('--all', 'every dead letter of the topic')
}

function choiceOf(topic: string | undefined, positions: readonly string[], options: Options): DeadLetterChoice {
  const { topic: allOf, all = false } = options
  if (all && allOf !== undefined && topic === undefined) return { topic: allOf, positions: 'all' }
  if (all || allOf !== undefined || topic === undefined || positions.length === 0) {
    throw new UsageError('Say which: a topic and positions (title-count 1/0/17 1/0/23), or --topic title-count --all.')
  }
  if (positions.length > DEAD_LETTER_CHOICE_MAX) {
    throw new UsageError(
      `${positions.length} positions are too many; ${DEAD_LETTER_CHOICE_MAX} can be named at once, or all by --topic ${topic} --all.`
    )
  }
  return { topic, positions: positions.map(positionOf) }
}

function positionOf(text: string): Position {
  const [, epoch = '', partition = '', offset = ''] = /^(\d{1,5})\/(\d{1,5})\/(\d{1,15})$/.exec(text) ?? []
  if (offset === '' || Number(epoch) > 65_535 || Number(partition) > 65_535) {
    throw new UsageError(`A position is epoch/partition/offset, such as 1/0/17; got ${JSON.stringify(text)}.`)
  }
  return { epoch: Number(epoch), partition: Number(partition), offset: Number(offset) }
}

function limitOf(text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= DEAD_LETTER_LIST_MAX) return Number(text)
  throw new UsageError(`--limit takes a whole number from 1 to ${DEAD_LETTER_LIST_MAX}; got ${JSON.stringify(text)}.`)
}

/** A line that is written over on a terminal, nothing elsewhere. */
function progressOf({ errors }: Terminal, { json }: Options): (progress: RetryProgress) => void {
  return ({ retried, passedOver, refused }) => {
    if (json === true || !errors.isTTY) return
    errors.write(`\r\x1b[K${retried + passedOver + refused} judged`)
  }
}

function linesOfList({ messages, total }: DeadLetterList, isDropped: boolean): string[] {
  if (total === 0) return [isDropped ? 'Nothing was dropped.' : 'There are no dead letters.']
  const rows = messages.map((message) => [
    message.topic,
    placeOf(message),
    message.parkedAt,
    String(message.bytes),
    plain(message.reason)
  ])
  const more = total - messages.length
  return [
    ...table([['TOPIC', 'POSITION', 'PARKED AT', 'BYTES', 'REASON'], ...rows]),
    ...(more > 0 ? [`and ${more} more; --topic and --limit choose`] : [])
  ]
}

function linesOfContent(content: DeadLetterContent): string[] {
  const headers = Object.entries(content.headers).map(([name, value]) => [`  ${plain(name)}`, plain(value)])
  return [
    `${content.topic} ${placeOf(content)}, ${content.state} since ${content.parkedAt}`,
    `reason: ${plain(content.reason)}`,
    `key: ${plain(content.key)}`,
    ...(headers.length === 0 ? ['no headers'] : ['headers:', ...table(headers)]),
    `${content.bytes} bytes:`,
    ...dumpOf(Buffer.from(content.value, 'base64'))
  ]
}

function linesOfRetry({ retried, passedOver, refused, refusals, behind }: RetryReport): string[] {
  if (retried + passedOver + refused + behind.length === 0) return ['None of these is a dead letter.']
  const more = refused - refusals.length
  return [
    `${retried} can be read now and are in their places, ${refused} cannot and stay.`,
    ...(passedOver === 0
      ? []
      : [
          `${passedOver} are about people who were forgotten, or of imports that were taken back, and are passed over.`
        ]),
    ...refusals.map((each) => `  ${each.topic} ${placeOf(each)}: ${plain(each.reason)}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...(behind.length === 0
      ? []
      : [
          `Not in all answers yet: ${behind.join(', ')} take them as soon as they run; \`gamenet status\` tells why not.`
        ])
  ]
}

function placeOf({ epoch, partition, offset }: Omit<DeadLetterPosition, 'topic'>): string {
  return `${epoch}/${partition}/${offset}`
}
