import { pause } from '@gamenet/schemas'
import type { Command } from 'commander'
import { UsageError } from '../../config.js'
import { diskLines } from '../../data-directory/disk.js'
import { noServiceLine, withData } from '../../reach.js'
import { signalled } from '../../terminal/signalled.js'
import { addCommand, counted, print, type Terminal, table } from '../../terminal/terminal.js'
import { CAUGHT_UP_SECONDS_MAX, type CaughtUpReport, caughtUp } from './caught-up.js'
import { type Status, status } from './operation.js'
import { rebuildTable } from './rebuild-text.js'
import { verdictOf } from './verdict.js'

const WAIT_SECONDS = 60
const WATCH_MS = 2000
const CLEAR = '\x1b[H\x1b[2J'

export function addStatus(program: Command, terminal: Terminal): void {
  addCommand(program, 'status', 'sources, loaded positions of topics, lag of projections, dead letters, disk')
    .option(
      '--wait [seconds]',
      `wait until the tables have caught up with the current log (${WAIT_SECONDS} s unless given)`
    )
    .option('--watch', `print it again every ${WATCH_MS / 1000} s, until Ctrl-C`)
    .action(async (options: Options) => {
      const seconds = options.wait === undefined ? undefined : secondsOf(options.wait)
      await withData(terminal, async (operations, isRunning) => {
        const wait = seconds === undefined ? undefined : await operations.run(caughtUp, { seconds })
        if (wait?.caughtUp === false) terminal.exitCode = 1
        const show = async () => {
          const found = await operations.run(status, {})
          if (options.watch === true && options.json !== true && terminal.output.isTTY) terminal.output.write(CLEAR)
          print(terminal, options.json, wait === undefined ? found : { ...found, wait }, [
            verdictOf(found, isRunning ? undefined : noServiceLine(terminal.config())),
            ...linesOf(found),
            ...(wait === undefined ? [] : [caughtUpLine(wait)])
          ])
        }
        await show()
        if (options.watch === true) await repeat(show)
      })
    })
}

type Options = { json?: boolean; wait?: string | true; watch?: boolean }

/** Runs `show` at an interval until SIGINT or SIGTERM. */
async function repeat(show: () => Promise<void>): Promise<void> {
  const stopped = new AbortController()
  void signalled().then(() => stopped.abort())
  for (;;) {
    await pause(WATCH_MS, stopped.signal)
    if (stopped.signal.aborted) return
    await show()
  }
}

function secondsOf(wait: string | true): number {
  if (wait === true) return WAIT_SECONDS
  if (/^\d{1,5}$/.test(wait) && Number(wait) <= CAUGHT_UP_SECONDS_MAX) return Number(wait)
  throw new UsageError(`--wait takes whole seconds from 0 to ${CAUGHT_UP_SECONDS_MAX}; got ${JSON.stringify(wait)}.`)
}

function linesOf(status: Status): string[] {
  const engines = Object.entries(status.engines).map(([role, engine]) => `${role} ${engine}`)
  return [
    `Gamenet Stats ${status.version}, since ${status.startedAt}; ${engines.join(', ')}`,
    ...clickhouseLines(status.clickhouse),
    '',
    ...table([['SOURCE', 'PERIOD', 'LAST RUN', 'RESULT'], ...status.sources.map(sourceRow)]),
    '',
    ...table([
      ['TOPIC', 'PARTITION', 'HEAD', 'LOADED', 'BEHIND'],
      ...status.topics.map((row) => [
        row.topic,
        `${row.epoch}/${row.partition}`,
        row.head === null ? '?' : `${row.head}`,
        `${row.loaded}`,
        secondsText(row.lagSeconds)
      ])
    ]),
    ...(status.topics.some(({ head }) => head === null)
      ? ['HEAD ?: the log does not answer, or no longer has this epoch, whose events the tables keep.']
      : []),
    '',
    ...table([
      ['PROJECTION', 'STATE', 'LAG', 'BEHIND', 'REASON'],
      ...status.projections.map((row) => [
        row.projection,
        row.state,
        `${row.lagEvents}`,
        secondsText(row.lagSeconds),
        row.reason ?? ''
      ])
    ]),
    ...(status.rebuilds.length === 0 ? [] : ['', ...rebuildTable(status.rebuilds), '']),
    ...Object.entries(status.deadLetters).map(
      ([topic, messages]) =>
        `Dead letters: ${counted(messages, 'message')} of ${topic} could not be read: \`gamenet dead-letters list ` +
        `--topic ${topic}\``
    ),
    ...status.stalled.map(({ topic, reason }) => `Loading of ${topic} is stalled: ${reason}`),
    ...status.damage.map(({ reason }) => reason),
    ...erasureLines(status.erasures),
    ...spoolLines(status.spool),
    ...(status.trouble === null || status.stalled.some(({ reason }) => reason === status.trouble)
      ? []
      : ['', `Loading is stalled: ${status.trouble}`]),
    '',
    ...diskLines(status.disk),
    ...status.background.map(
      (work) =>
        `${work.name}: ${work.done} of ${work.total} (${Math.floor((100 * work.done) / Math.max(1, work.total))} %)`
    )
  ]
}

function clickhouseLines(clickhouse: Status['clickhouse']): string[] {
  if (clickhouse === null || clickhouse.restarts === 0) return []
  const { pid, restarts } = clickhouse
  return [`ClickHouse was started again ${counted(restarts, 'time')}; its process is ${pid ?? 'not running now'}`]
}

const secondsText = (seconds: number | null): string => (seconds === null ? '?' : `${Math.round(seconds)} s`)

function erasureLines(erasures: Status['erasures']): string[] {
  if (erasures === null || erasures.pending === 0) return []
  const { pending, oldestSeconds } = erasures
  return [`Not complete: ${counted(pending, 'erasure')}, the oldest for ${oldestSeconds} s: \`gamenet erase --list\``]
}

function spoolLines(spool: Status['spool']): string[] {
  if (spool === null || spool.messages === 0) return []
  const why = spool.reason === null ? '' : `: ${spool.reason}`
  return [
    `Waiting for the log: ${counted(spool.messages, 'message')} since ${spool.oldestAt}, ` +
      `${spool.bytes} of ${spool.bytesMax} bytes${why}`
  ]
}

function sourceRow(source: Status['sources'][number]): string[] {
  const { periodSeconds } = source
  const period = periodSeconds === null ? 'elsewhere' : periodSeconds === 0 ? 'on request' : `${periodSeconds} s`
  const run = source.lastRun
  if (run === null) return [source.source, period, 'never', '']
  return [
    source.source,
    period,
    run.observedAt,
    `${run.outcome}, ${counted(run.published, 'event')}${run.reason === '' ? '' : `; ${run.reason}`}`
  ]
}

function caughtUpLine(wait: CaughtUpReport): string {
  if (wait.caughtUp) return `The tables have caught up (waited ${wait.waitedMs} ms).`
  return `After ${wait.waitedMs} ms the tables have not caught up: ${wait.behind.join('; ')}.`
}
