import { randomInt } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import { endOnWrongUsage } from '../../src/terminal/wrong-usage.js'
import { REBUILT_NAMES } from './rebuilder.js'
import { type Engines, type Report, torture } from './torture.js'

/*
 * `npm run torture`: kills real processes under load at random instants, then compares all data with the pages shown and the
 * writes acknowledged. A further run with the same directory continues on its data and adds to its figures.
 */

const SEEDS = 2 ** 31

const program = new Command('torture')
  .description('Kills the service repeatedly, then compares its data with the expected data.')
  .option('--kills <n>', 'number of kills', '30')
  .addOption(
    new Option('--engines <engines>', 'engines of the service')
      .choices(['embedded', 'kafka', 'replicas'])
      .default('embedded')
  )
  .option('--seed <n>', 'seed of the kills and of the upstream pages; random unless given')
  .option('--directory <path>', 'directory for all data, which a further run can continue on; a new one unless given')
  .option('--rebuild-all', 'continue until every projection has been rebuilt and has served')
  .exitOverride(endOnWrongUsage)
  .parse()

type Options = {
  readonly kills: string
  readonly engines: Engines
  readonly seed?: string
  readonly directory?: string
  readonly rebuildAll?: boolean
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
  process.stdout.write(textOf(report))
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
    `Acknowledged: ${counts.ratings} ratings, ${counts.edits} edits, ${counts.imports} imports, ${counts.scrapes} scrapes. Read: ${counts.answers} answers, ${counts.refusals} temporary refusals. Rebuilds: ${counts.rebuilds}, with ${counts.swaps} swaps and rollbacks.`,
    starts.length === 0 ? '' : `Starts took ${Math.round(starts[Math.floor(starts.length / 2)] ?? 0)} ms (median).`,
    differences.length === 0 ? 'No row is lost or wrong.' : `${differences.length} DIFFERENCES:`,
    ...differences.slice(0, 20).map((difference) => `  ${difference}`),
    ''
  ].join('\n')
}
