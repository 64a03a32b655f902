import { randomInt } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import { endOnWrongUsage } from '../../src/commands/wrong-usage.js'
import { REBUILT_NAMES } from './rebuilder.js'
import { type Engines, type Report, torture } from './torture.js'

/*
 * `npm run torture`: real processes under load, killed at random instants; then all their data is compared with the
 * shown pages and the acknowledged writes. A second run with the same directory resumes and adds to its figures.
 */

const SEEDS = 2 ** 31

const program = new Command('torture')
  .description('Kills the service repeatedly, then compares its data with the expected data.')
  .option('--kills <n>', 'number of kills', '30')
  .addOption(new Option('--engines <engines>', 'which engines').choices(['embedded', 'kafka']).default('embedded'))
  .option('--seed <n>', 'decides the kills and the upstream pages; random unless given')
  .option('--directory <path>', 'the directory for all data, also for the next run; a new one unless given')
  .option('--rebuild-all', 'continue until every projection has been rebuilt, and served')
  .option('--json', 'print one JSON document')
  .exitOverride(endOnWrongUsage)
  .parse()

type Options = {
  readonly kills: string
  readonly engines: Engines
  readonly seed?: string
  readonly directory?: string
  readonly rebuildAll?: boolean
  readonly json?: boolean
}
const options = program.opts<Options>()
const kills = wholeNumber('--kills', options.kills, 1_000_000)
const rebuilt = options.rebuildAll === true ? REBUILT_NAMES : []
const seed = options.seed === undefined ? randomInt(SEEDS) : wholeNumber('--seed', options.seed, SEEDS - 1)
const directory = options.directory ?? join(tmpdir(), `gamenet-torture-${options.engines}-${seed}`)
const trace: string[] = []
const TRACE_LINES = 12
const note = (sentence: string): void => {
  process.stderr.write(`${sentence}\n`)
  trace.push(sentence)
  if (trace.length > TRACE_LINES) trace.shift()
}

try {
  const report = await torture({ engines: options.engines, kills, rebuilt, seed, directory, note })
  process.stdout.write(options.json === true ? `${JSON.stringify(report, null, 2)}\n` : textOf(report))
  if (report.differences.length > 0) fail()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  fail()
}

function fail(): void {
  const lines = [`Seed ${seed}; the data is in ${directory}. The last steps:`, ...trace]
  process.stderr.write(`${lines.join('\n')}\n`)
  process.exitCode = 1
}

function wholeNumber(name: string, text: string, most: number): number {
  if (/^(0|[1-9]\d*)$/.test(text) && Number(text) <= most) return Number(text)
  return program.error(`${name} takes a whole number from 0 to ${most}; got ${JSON.stringify(text)}.`)
}

function textOf({ engines, counts, differences, seconds, struckBy, startsMs, ...report }: Report): string {
  const starts = [...startsMs].sort((a, b) => a - b)
  return [
    `Engines ${engines}, seed ${report.seed}: ${counts.kills} kills and ${counts.pauses} pauses in ${counts.runs} runs, ${Math.round(counts.seconds)} s (this one ${Math.round(seconds)} s).`,
    ...Object.entries(struckBy).map(([what, times]) => `  ${what}: ${times}`),
    `Acknowledged: ${counts.ratings} ratings, ${counts.edits} edits, ${counts.imports} imports, ${counts.scrapes} scrapes. Read: ${counts.answers} answers, ${counts.refusals} refusals for a while. Rebuilds: ${counts.rebuilds}, with ${counts.swaps} swaps and rollbacks.`,
    starts.length === 0 ? '' : `A start took ${Math.round(starts[Math.floor(starts.length / 2)] ?? 0)} ms (median).`,
    differences.length === 0 ? 'No row is lost or wrong.' : `${differences.length} DIFFERENCES:`,
    ...differences.slice(0, 20).map((difference) => `  ${difference}`),
    ''
  ].join('\n')
}
