import { readFile } from 'node:fs/promises'
import type { RebuildStatus, SwapReport } from '@gamenet/projector/rebuild'
import { errorCode, pause } from '@gamenet/schemas'
import { type Command, Option } from 'commander'
import { FailureError, UsageError } from '../../config.js'
import { withData } from '../../reach.js'
import { type Progress, showProgress } from '../../terminal/progress.js'
import { addCommand, print, type Terminal, withHeartbeat } from '../../terminal/terminal.js'
import type { Operation, Operations } from '../operation.js'
import { status } from '../status/operation.js'
import { linesOfList, linesOfPlan, linesOfStatus, linesOfVerify, rateOf } from '../status/rebuild-text.js'
import { rebuild } from './operation.js'
import { csvOfPreview, linesOfPreview } from './preview-text.js'

type Options = { json?: boolean; follow?: boolean }
type StartOptions = Options & {
  until?: string
  recordedUntil?: string
  fromLog?: boolean
  rate?: string
  key?: string
}

export function addRebuild(program: Command, terminal: Terminal): void {
  const command = program
    .command('rebuild')
    .description('fill a second set of tables of a projection from the events, compare them, and swap them in')
  addLooking(command, terminal)
  addFilling(command, terminal)
  addPreview(command, terminal)
  addSwapping(command, terminal)
}

function addLooking(parent: Command, terminal: Terminal): void {
  onProjection(parent, 'plan', 'print what a rebuild reads and writes, how long it takes, and whether it can start')
    .option('--from-log', 'including a reload of the event tables from the log')
    .action(async (projection: string, { json, fromLog }: StartOptions) => {
      const reload = fromLog === true ? { isFromLog: true } : {}
      const plan = await waitFor(terminal, rebuild.plan, { projection, ...reload })
      print(terminal, json, plan, linesOfPlan(plan))
      if (plan.obstacles.length > 0) terminal.exitCode = 1
    })
  addCommand(parent, 'status', 'print all rebuilds, the newest first')
    .argument('[projection]', 'rebuilds of this projection only')
    .action(async (projection: string | undefined, options: Options) => {
      const { found, isRunning } = await withData(terminal, async (operations, isRunning) => ({
        found: await listed(operations, projection),
        isRunning
      }))
      const waiting = isRunning ? [] : found.filter(({ state }) => state === 'filling').map(waitingLine)
      print(terminal, options.json, found, [...linesOfList(found), ...waiting])
    })
  onProjection(parent, 'verify', 'compare old and new tables row by row; exit code 1 when they differ').action(
    async (projection: string, options: Options) => {
      const report = await waitFor(terminal, rebuild.verify, { projection })
      print(terminal, options.json, report, linesOfVerify(report))
      if (!report.isEqual) terminal.exitCode = 1
    }
  )
}

function addPreview(parent: Command, terminal: Terminal): void {
  onProjection(parent, 'preview', 'print which answers a swap changes, those with the greatest effect first')
    .option('--key <key>', 'by the rows of one title or board only')
    .addOption(new Option('--csv', 'print a CSV of the answers instead of text').conflicts('json'))
    .action(async (projection: string, { json, csv, key }: StartOptions & { csv?: boolean }) => {
      const input = { projection, ...(key === undefined ? {} : { key }) }
      const preview = await waitFor(terminal, rebuild.preview, input)
      print(terminal, json, preview, csv === true ? csvOfPreview(preview) : linesOfPreview(preview))
    })
}

function rateFrom(text: string, least: number): number {
  const rate = Number(text)
  if (/^\d{1,15}$/.test(text) && rate >= least) return rate
  const how = least === 0 ? '0 pauses the rebuild' : 'gamenet rebuild rate changes it later'
  throw new UsageError(
    `A rate is a whole number of events per second, ${least} to 999999999999999 (${how}); got ${JSON.stringify(text)}.`
  )
}

function waitingLine({ id, projection }: RebuildStatus): string {
  return (
    `No service runs here: rebuild ${id} continues when one starts, or by \`gamenet rebuild resume ` +
    `${projection}\`.`
  )
}

async function listed(operations: Operations, projection: string | undefined): Promise<RebuildStatus[]> {
  const all = await operations.run(rebuild.list, {})
  if (projection === undefined) return all
  const found = all.filter((each) => each.projection === projection || each.unit.includes(projection))
  if (found.length > 0) return found
  const names = (await operations.run(status, {})).projections.map((each) => each.projection)
  if (names.includes(projection) || projection === 'all') return []
  throw new UsageError(`There is no projection ${JSON.stringify(projection)}; there are ${names.join(', ')}.`)
}

function addFilling(parent: Command, terminal: Terminal): void {
  following(onProjection(parent, 'start', 'fill fresh tables while the old ones serve'))
    .option('--until <time|offset>', 'stop there: for inspection, cannot be swapped in')
    .option('--recorded-until <time>', 'from what the log had recorded by then: for inspection, too')
    .option('--from-log', 'load the event tables from the log first')
    .option('--rate <n>', 'fill at most this many events per second')
    .option('--key <key>', 'correct the rows of one title or board only, and swap them in')
    .action((projection: string, options: StartOptions) =>
      fill(terminal, projection, options, (operations) =>
        operations.run(rebuild.start, {
          projection,
          ...(options.until === undefined ? {} : { until: options.until }),
          ...(options.recordedUntil === undefined ? {} : { recordedUntil: options.recordedUntil }),
          ...(options.fromLog === true ? { isFromLog: true } : {}),
          ...(options.rate === undefined ? {} : { rate: rateFrom(options.rate, 1) }),
          ...(options.key === undefined ? {} : { key: options.key })
        })
      )
    )
  onProjection(parent, 'rate', 'fill at most this many events per second from now on; 0 pauses the rebuild')
    .argument('<n>', 'events per second')
    .action(async (projection: string, rate: string, { json }: Options) => {
      const eventsPerSecond = rateFrom(rate, 0)
      const status = await waitFor(terminal, rebuild.rate, { projection, rate: eventsPerSecond })
      print(terminal, json, status, linesOfStatus(status))
    })
  changing(parent, terminal, 'pause', 'pause a rebuild')
  following(onProjection(parent, 'resume', 'resume a rebuild that is paused or has failed')).action(
    (projection: string, options: Options) =>
      fill(terminal, projection, options, (operations) => operations.run(rebuild.resume, { projection }))
  )
  changing(parent, terminal, 'cancel', 'cancel a rebuild that is not swapped in, and drop its tables')
}

function addSwapping(parent: Command, terminal: Terminal): void {
  onProjection(parent, 'swap', 'let the new tables serve, and keep the old ones')
    .option('--accept-differences', 'even if verify found differences')
    .addOption(
      new Option(
        '--expect <file>',
        'if nothing differs but what this preview, made by preview --json, shows'
      ).conflicts('acceptDifferences')
    )
    .action(async (projection: string, options: Options & { acceptDifferences?: boolean; expect?: string }) => {
      const { expect: file } = options
      const accepted = {
        ...(options.acceptDifferences === true ? { acceptDifferences: true } : {}),
        ...(file === undefined ? {} : { expect: await previewFile(file) })
      }
      const report = await waitFor(terminal, rebuild.swap, { projection, ...accepted })
      print(terminal, options.json, report, [
        swappedLine(`The new tables of ${projection} serve`, report),
        `The old ones are kept: \`gamenet rebuild rollback ${projection}\` undoes the swap, \`drop\` deletes them.`
      ])
    })
  onProjection(parent, 'rollback', 'undo a swap: the old tables catch up and serve again').action(
    async (projection: string, options: Options) => {
      const report = await waitFor(terminal, rebuild.rollback, { projection })
      print(terminal, options.json, report, [swappedLine(`The old tables of ${projection} serve again`, report)])
    }
  )
  changing(parent, terminal, 'drop', 'drop the old tables of a swap, which then cannot be undone')
}

function onProjection(parent: Command, name: string, description: string): Command {
  return addCommand(parent, name, description).argument('<projection>', 'as `gamenet status` lists them, or all')
}

function following(command: Command): Command {
  return command
    .option('--follow', 'show progress until it is filled, the default on a terminal')
    .option('--no-follow', 'only start it; it continues in the service')
}

async function previewFile(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UsageError(
      `The file ${path} of --expect cannot be read (${errorCode(error)}). Make it: gamenet rebuild preview ` +
        '<projection> --json > FILE.'
    )
  })
}

function swappedLine(what: string, { caughtUp, lateMs }: SwapReport): string {
  return `${what}; ${caughtUp} events were loaded first; new data was delayed by ${Math.ceil(lateMs)} ms.`
}

function changing(parent: Command, terminal: Terminal, verb: 'pause' | 'cancel' | 'drop', description: string): void {
  onProjection(parent, verb, description).action(async (projection: string, { json }: Options) => {
    const status = await waitFor(terminal, rebuild[verb], { projection })
    print(terminal, json, status, linesOfStatus(status))
  })
}

/** Runs a possibly slow operation without progress. */
const waitFor = <Input, Result>(
  terminal: Terminal,
  operation: Operation<Input, unknown, Result>,
  input: NoInfer<Input>
) => withData(terminal, (operations) => withHeartbeat(terminal, operations.run(operation, input)))

const POLL_MS = 500
/** A rebuild of one key takes a second or two. */
const KEY_POLL_MS = 50

/** Shows the progress of a rebuild until it no longer fills. */
async function follow(
  terminal: Terminal,
  isShown: boolean,
  operations: Operations,
  begun: RebuildStatus
): Promise<RebuildStatus> {
  const display = showProgress(terminal, isShown)
  try {
    for (let status = begun; ; ) {
      display.update(progressOf(status))
      // A swap that no operator requests follows the fill.
      if (status.state !== 'filling' && status.state !== 'swapping') return status
      await pause(status.key === null ? POLL_MS : KEY_POLL_MS)
      const found = (await operations.run(rebuild.list, {})).find(({ id }) => id === begun.id)
      if (found === undefined)
        throw new FailureError(`Rebuild ${begun.id} is no longer known; \`gamenet rebuild status\` lists all rebuilds.`)
      status = found
    }
  } finally {
    display.stop()
  }
}

function progressOf({ projection, progress }: RebuildStatus): Progress {
  const { share, etaSeconds } = progress
  const label = progress.projection === '' ? projection : progress.projection
  return { label, share, details: [rateOf(progress)], etaSeconds }
}

const IN_SERVICE = 'It continues in the service when this command ends.\n'
const HERE =
  'No service runs here: this command fills the tables. If it is interrupted, the next service that starts resumes.\n'

/** Starts a fill. Where no service runs, this process fills to the end. */
async function fill(
  terminal: Terminal,
  projection: string,
  options: StartOptions,
  begin: (operations: Operations) => Promise<RebuildStatus>
): Promise<void> {
  const isShown = options.json !== true
  const wantsToFollow = options.follow ?? (options.key !== undefined || (isShown && terminal.errors.isTTY === true))
  const { status, isFollowed } = await withData(terminal, async (operations, isRunning) => {
    const begun = await withHeartbeat(terminal, begin(operations))
    if (isRunning && !wantsToFollow) return { status: begun, isFollowed: false }
    if (isShown) terminal.errors.write(isRunning ? IN_SERVICE : HERE)
    const followed = await follow(terminal, isShown, operations, begun)
    return { status: followed, isFollowed: true }
  })
  print(terminal, options.json, status, linesOfStatus(status))
  if (!isFollowed || status.state === (status.key === null ? 'filled' : 'swapped')) return
  if (status.state === 'failed') throw new FailureError(`The rebuild of ${projection} failed: ${status.reason}`)
  if (status.state === 'cancelled' && status.reason !== null)
    throw new FailureError(`The rebuild of ${status.key} in ${projection} was cancelled: ${status.reason}`)
  terminal.exitCode = 1
}
