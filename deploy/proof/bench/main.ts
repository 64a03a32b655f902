import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { endOnWrongUsage } from '../../src/terminal/wrong-usage.js'
import { type Comparison, compareRuns, StoredRun } from './compare-runs.js'
import { CannotMeasure, figure, type Measurement, type Result, ratioOf, verdictOf } from './measurement.js'
import { measurements } from './measurements.js'

/*
 * `npm run bench`: runs each measurement in its own process, one after the other, and prints a table. A measurement is killed
 * after forty minutes, with all processes that it started.
 */

const MEASUREMENT_MS_MAX = 2_400_000

type Options = {
  readonly scale: string
  readonly full?: boolean
  readonly compare?: string
  readonly json?: boolean
  readonly one?: boolean
  readonly directory?: string
}
type Outcome = { readonly results: readonly Result[] } | { readonly missing: string } | { readonly failed: string }
type Report = Outcome & { readonly name: string; readonly claim: string; readonly seconds: number }

const program = new Command('bench')
  .description('Measures what the service promises.')
  .argument('[name...]', `which measurements: ${measurements.map(({ name }) => name).join(', ')}; all unless given`)
  .option('--scale <share>', 'amount of data, as a fraction of the claimed amount', '0.1')
  .option('--full', 'the claimed amount of data; takes hours')
  .option('--compare <file>', 'report figures that are worse, beyond noise, than in this run (stored with --json)')
  .option('--json', 'print one JSON document instead of a table')
  .option('--one', 'run one measurement in this process')
  .option('--directory <path>', 'directory for the data that measurements share')
  .exitOverride(endOnWrongUsage)

await program.parseAsync()
const names = program.args
const options = program.opts<Options>()
const scale = options.full === true ? 1 : Number(options.scale)
if (!(scale > 0 && scale <= 1)) program.error(`--scale takes a number above 0 and up to 1; got ${options.scale}.`)
const before = options.compare === undefined ? undefined : storedRun(options.compare)
const chosen = names.length === 0 ? measurements : names.map(named)

if (options.one === true) {
  for (const measurement of chosen) {
    const outcome = await measured(measurement)
    await new Promise((resolve) => process.send?.(outcome, resolve))
  }
  // process.exit may hang while an engine has threads.
  process.kill(process.pid, 'SIGKILL')
} else {
  await runAll()
}

function storedRun(file: string): StoredRun {
  const run = readRun(file)
  if (run.conditions.scale === scale) return run
  return program.error(`${file} is a run of scale ${run.conditions.scale}; run with --scale ${run.conditions.scale}.`)
}

function readRun(file: string): StoredRun {
  try {
    return StoredRun.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    return program.error(
      `${file} cannot be compared with (${error instanceof Error && 'code' in error ? error.code : 'other contents'}); expected the output of --json.`
    )
  }
}

function named(name: string): Measurement {
  const found = measurements.find((measurement) => measurement.name === name)
  if (found !== undefined) return found
  return program.error(
    `Unknown measurement ${JSON.stringify(name)}; expected one of ${measurements.map((each) => each.name).join(', ')}.`
  )
}

/** Runs one measurement in this process. */
async function measured(measurement: Measurement): Promise<Outcome> {
  try {
    const note = (sentence: string) => void process.stderr.write(`  ${sentence}\n`)
    const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'gamenet-bench-')))
    return { results: await measurement.run({ scale, directory, note }) }
  } catch (error) {
    if (error instanceof CannotMeasure) return { missing: error.message }
    return { failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

async function runAll(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'gamenet-bench-'))
  const conditions = {
    cores: cpus().length,
    processor: cpus()[0]?.model ?? 'unknown',
    node: process.versions.node,
    loadBefore: loadavg()[0] ?? 0,
    scale
  }
  const reports: Report[] = []
  try {
    for (const measurement of chosen) {
      process.stderr.write(`${measurement.name}: ${measurement.claim}\n`)
      const begun = performance.now()
      const outcome = await inOwnProcess(measurement, directory)
      const seconds = (performance.now() - begun) / 1000
      reports.push({ name: measurement.name, claim: measurement.claim, seconds, ...outcome })
      process.stderr.write(`  ${seconds.toFixed(0)} s\n`)
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
  if (options.json === true) process.stdout.write(`${JSON.stringify({ conditions, reports }, null, 2)}\n`)
  else process.stdout.write(tableOf(conditions, reports))
  if (before !== undefined) process.stderr.write(comparisonText(compareRuns(before, reports)))
  if (reports.some((report) => 'failed' in report)) process.exitCode = 1
}

async function inOwnProcess(measurement: Measurement, directory: string): Promise<Outcome> {
  const child = fork(
    fileURLToPath(import.meta.url),
    [measurement.name, '--one', '--scale', String(scale), '--directory', directory],
    // A process group, so that its child processes can be killed with it.
    { detached: true, stdio: ['ignore', 2, 2, 'ipc'] }
  )
  const endGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // The group has ended.
    }
  }
  const interrupted = () => {
    endGroup()
    rmSync(directory, { recursive: true, force: true })
    process.exit(130)
  }
  process.once('SIGINT', interrupted)
  process.once('SIGTERM', interrupted)
  const timer = setTimeout(endGroup, MEASUREMENT_MS_MAX)
  let outcome: Outcome | undefined
  child.on('message', (message) => {
    outcome = message as Outcome
  })
  const [code, signal] = await once(child, 'exit')
  clearTimeout(timer)
  endGroup()
  process.off('SIGINT', interrupted)
  process.off('SIGTERM', interrupted)
  return outcome ?? { failed: `its process ended with ${signal ?? code} before it reported a result` }
}

type RunConditions = {
  readonly cores: number
  readonly processor: string
  readonly node: string
  readonly loadBefore: number
  readonly scale: number
}

function tableOf(conditions: RunConditions, reports: readonly Report[]): string {
  const { cores, processor, node, loadBefore } = conditions
  const header = ['what', 'measured', 'target', 'ratio to a baseline of this run', 'verdict', '']
  const lines = reports.flatMap((report) => [
    '',
    `${report.name} — ${report.claim} (${report.seconds.toFixed(0)} s)`,
    ...('results' in report ? columns([header, ...report.results.map(cellsOf)]) : []),
    ...('missing' in report ? [`  not measured: ${report.missing}`] : []),
    ...('failed' in report ? [`  FAILED: ${report.failed}`] : [])
  ])
  const scaleText = conditions.scale === 1 ? '' : `; sizes × ${conditions.scale}, targets are for --full`
  const intro = `${cores} cores (${processor}), Node ${node}, load ${figure(loadBefore)} before${scaleText}`
  return `${[intro, ...lines].join('\n')}\n`
}

function comparisonText({ compared, slower, alone }: Comparison): string {
  const found = `${compared} figures compared with ${options.compare}, ${slower.length} slower beyond noise`
  const lines = [[found, ...slower], ...(alone.length > 0 ? [['Only in one of both runs', ...alone]] : [])]
  return lines.map(([head, ...rest]) => `${[`${head}${rest.length > 0 ? ':' : '.'}`, ...rest].join('\n  ')}\n`).join('')
}

function cellsOf(result: Result): string[] {
  const { target, baseline } = result
  const ratio = ratioOf(result)
  const unit = target?.of === 'ratio' ? ' ×' : result.unit === '' ? '' : ` ${result.unit}`
  return [
    result.what,
    `${figure(result.measured)} ${result.unit}`.trimEnd(),
    target === undefined ? '' : `${target.bound === 'at most' ? '≤' : '≥'} ${figure(target.value)}${unit}`,
    ratio === undefined || baseline === undefined
      ? ''
      : `${figure(ratio)} × (${baseline.what}: ${figure(baseline.measured)} ${result.unit})`,
    verdictOf(result),
    result.detail ?? ''
  ]
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd())
}
