import type { RebuildStatus, SwapReport } from '@gamenet/projector/rebuild'
import type { Command } from 'commander'
import { FailureError, UsageError } from '../config.js'
import type { Operations } from '../operations/operation.js'
import { rebuild } from '../operations/rebuild.js'
import { status } from '../operations/status.js'
import { withData } from './reach.js'
import { followRebuild } from './rebuild-progress.js'
import { linesOfList, linesOfPlan, linesOfStatus, linesOfVerify } from './rebuild-text.js'
import { addCommand, print, type Terminal, unsilently } from './terminal.js'

type Options = { json?: boolean; follow?: boolean }
type StartOptions = Options & { until?: string; fromLog?: boolean }

export function addRebuild(program: Command, terminal: Terminal): void {
  const command = program
    .command('rebuild')
    .description('make the tables of a projection anew from the events, compare them, and let them take the place')
  addLooking(command, terminal)
  addFilling(command, terminal)
  addSwapping(command, terminal)
}

function addLooking(parent: Command, terminal: Terminal): void {
  onProjection(parent, 'plan', 'what would be read and written, how long it takes, whether it can be started')
    .option('--from-log', 'with the event tables loaded anew from the log first')
    .action(async (projection: string, { json, fromLog }: StartOptions) => {
      const reload = fromLog === true ? { isFromLog: true } : {}
      const plan = await asked(terminal, (operations) => operations.run(rebuild.plan, { projection, ...reload }))
      print(terminal, json, plan, linesOfPlan(plan))
      if (plan.obstacles.length > 0) terminal.exitCode = 1
    })
  addCommand(parent, 'status', 'rebuilds that there are and were, the newest first')
    .argument('[projection]', 'those that have this projection')
    .action(async (projection: string | undefined, options: Options) => {
      const { found, isRunning } = await withData(terminal, async (operations, isRunning) => ({
        found: await listed(operations, projection),
        isRunning
      }))
      const waiting = isRunning ? [] : found.filter(({ state }) => state === 'filling').map(waitingLine)
      print(terminal, options.json, found, [...linesOfList(found), ...waiting])
    })
  onProjection(parent, 'verify', 'compare old and new row by row; exit code 1 when they differ').action(
    async (projection: string, options: Options) => {
      const report = await asked(terminal, (operations) => operations.run(rebuild.verify, { projection }))
      print(terminal, options.json, report, linesOfVerify(report))
      if (!report.isEqual) terminal.exitCode = 1
    }
  )
}

function waitingLine({ id, projection }: RebuildStatus): string {
  return `No service runs here: rebuild ${id} goes on when one starts, or by \`gamenet rebuild resume ${projection}\`.`
}

async function listed(operations: Operations, projection: string | undefined): Promise<RebuildStatus[]> {
  const all = await operations.run(rebuild.list, {})
  if (projection === undefined) return all
  const found = all.filter(({ unit }) => unit.includes(projection))
  if (found.length > 0) return found
  const names = (await operations.run(status, {})).projections.map((each) => each.projection)
  if (names.includes(projection)) return []
  throw new UsageError(`There is no projection ${JSON.stringify(projection)}; there are ${names.join(', ')}.`)
}

function addFilling(parent: Command, terminal: Terminal): void {
  following(onProjection(parent, 'start', 'fill fresh tables beside those that serve'))
    .option('--until <time|offset>', 'stop there: for inspection, never to be swapped in')
    .option('--from-log', 'load the event tables anew from the log first')
    .action((projection: string, options: StartOptions) =>
      fill(terminal, projection, options, (operations) =>
        operations.run(rebuild.start, {
          projection,
          ...(options.until === undefined ? {} : { until: options.until }),
          ...(options.fromLog === true ? { isFromLog: true } : {})
        })
      )
    )
  onProjection(parent, 'pause', 'hold a rebuild').action((projection: string, options: Options) =>
    tell(terminal, options, (operations) => operations.run(rebuild.pause, { projection }))
  )
  following(onProjection(parent, 'resume', 'go on with one that is paused or has failed')).action(
    (projection: string, options: Options) =>
      fill(terminal, projection, options, (operations) => operations.run(rebuild.resume, { projection }))
  )
  onProjection(parent, 'cancel', 'end one that was not swapped, and drop its tables').action(
    (projection: string, options: Options) =>
      tell(terminal, options, (operations) => operations.run(rebuild.cancel, { projection }))
  )
}

function addSwapping(parent: Command, terminal: Terminal): void {
  onProjection(parent, 'swap', 'let the new tables serve; the old ones are kept')
    .option('--accept-differences', 'although verify has found differences')
    .action(async (projection: string, options: Options & { acceptDifferences?: boolean }) => {
      const accepted = options.acceptDifferences === true ? { acceptDifferences: true } : {}
      const report = await asked(terminal, (operations) => operations.run(rebuild.swap, { projection, ...accepted }))
      print(terminal, options.json, report, [
        swappedLine(`The new tables of ${projection} serve`, report),
        `The old ones are kept: \`gamenet rebuild rollback ${projection}\` takes the swap back, \`drop\` frees their disk.`
      ])
    })
  onProjection(parent, 'rollback', 'let the old tables, caught up, serve again').action(
    async (projection: string, options: Options) => {
      const report = await asked(terminal, (operations) => operations.run(rebuild.rollback, { projection }))
      print(terminal, options.json, report, [swappedLine(`The old tables of ${projection} serve again`, report)])
    }
  )
  onProjection(parent, 'drop', 'drop the tables that a swap has left; it cannot be taken back then').action(
    (projection: string, options: Options) =>
      tell(terminal, options, (operations) => operations.run(rebuild.drop, { projection }))
  )
}

function onProjection(parent: Command, name: string, description: string): Command {
  return addCommand(parent, name, description).argument('<projection>', 'as `gamenet status` lists them')
}

function following(command: Command): Command {
  return command
    .option('--follow', 'show how far it has come until it is filled, as on a terminal')
    .option('--no-follow', 'only begin; it goes on in the service')
}

function swappedLine(what: string, { caughtUp, heldMs }: SwapReport): string {
  return `${what}; ${caughtUp} events were caught up before, answers waited ${Math.ceil(heldMs)} ms.`
}

async function tell(
  terminal: Terminal,
  options: Options,
  act: (operations: Operations) => Promise<RebuildStatus>
): Promise<void> {
  const status = await asked(terminal, act)
  print(terminal, options.json, status, linesOfStatus(status))
}

/** Asks what may take its time. */
function asked<Answer>(terminal: Terminal, ask: (operations: Operations) => Promise<Answer>): Promise<Answer> {
  return withData(terminal, (operations) => unsilently(terminal, ask(operations)))
}

const IN_SERVICE = 'It goes on in the service, whatever becomes of this command.\n'
const HERE =
  'No service runs here, so that this command fills; cut off, the next service that starts goes on with it.\n'

/** Begins to fill. Where no service runs to go on with it, it is filled here to its end. */
async function fill(
  terminal: Terminal,
  projection: string,
  options: Options,
  begin: (operations: Operations) => Promise<RebuildStatus>
): Promise<void> {
  const isShown = options.json !== true
  const wantsToFollow = options.follow ?? (isShown && terminal.errors.isTTY === true)
  const { status, isFollowed } = await withData(terminal, async (operations, isRunning) => {
    const begun = await unsilently(terminal, begin(operations))
    if (isRunning && !wantsToFollow) return { status: begun, isFollowed: false }
    if (isShown) terminal.errors.write(isRunning ? IN_SERVICE : HERE)
    const followed = await followRebuild(terminal, isShown, () => operations.run(rebuild.list, {}), begun)
    return { status: followed, isFollowed: true }
  })
  print(terminal, options.json, status, linesOfStatus(status))
  if (!isFollowed || status.state === 'filled') return
  if (status.state === 'failed') throw new FailureError(`The rebuild of ${projection} failed: ${status.reason}`)
  terminal.exitCode = 1
}
