import { Command } from 'commander'
import { endOnWrongUsage } from '../../src/terminal/wrong-usage.js'
import { mistakes } from './bugs.js'
import { firstThatFinds, writeFoundBy } from './found-by.js'
import { type Outcome, runSeed } from './run-seed.js'

/*
 * `npm run simulate`: runs random worlds, one per seed, and compares the tables of each with a plain fold of the
 * events. A failed seed can be run again: its world has the same events in the same order.
 */

type Options = {
  readonly seeds: string
  readonly seed: string
  readonly bug?: string
  readonly prove?: boolean
  readonly write?: boolean
  readonly trace?: boolean
  readonly keepGoing?: boolean
}

const PROVE_SEEDS_MAX = 1000
const TRACE_LINES = 60

const program = new Command('simulate')
  .description('Searches simulated worlds full of crashes and faults for lost or wrong rows.')
  .option('--seeds <number>', 'number of worlds', '200')
  .option('--seed <number>', 'the first seed', '1')
  .option('--bug <name>', `plant a mistake: ${Object.keys(mistakes).join(', ')}`)
  .option('--prove', `for each mistake, the first seed of ${PROVE_SEEDS_MAX} that finds it`)
  .option('--write', 'with --prove, write these seeds to deploy/proof/simulate/found-by.json, which the tests read')
  .option('--keep-going', 'continue after a failed seed; print one line for each')
  .option('--trace', 'print the last events of every seed, not only of one that fails')
  .exitOverride(endOnWrongUsage)

await program.parseAsync()
const options = program.opts<Options>()
const first = wholeNumber('--seed', options.seed)
const seeds = wholeNumber('--seeds', options.seeds)
if (options.bug !== undefined && mistakes[options.bug] === undefined) {
  program.error(`Unknown bug ${JSON.stringify(options.bug)}; expected one of ${Object.keys(mistakes).join(', ')}.`)
}
process.exitCode = options.prove === true ? await prove() : await search(options.bug)

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  return program.error(`${name} takes a whole number up to 999999999; got ${JSON.stringify(text)}.`)
}

async function search(bug: string | undefined): Promise<number> {
  const begun = performance.now()
  let events = 0
  let deaths = 0
  let failed = 0
  for (let seed = first; seed < first + seeds; seed += 1) {
    const outcome = await runSeed(seed, { ...(bug !== undefined && { bug }), isTraced: options.trace === true })
    events += outcome.events
    deaths += outcome.deaths
    if (options.trace === true) print(outcome)
    if (outcome.faults.length > 0 && options.keepGoing === true) {
      failed += 1
      process.stdout.write(`seed ${seed}: ${outcome.faults[0]}\n`)
    } else if (outcome.faults.length > 0) {
      print(await runSeed(seed, { ...(bug !== undefined && { bug }), isTraced: true }))
      const bugText = bug === undefined ? '' : ` --bug ${bug}`
      process.stdout.write(`\nRun it again: npm run simulate -- --seeds 1 --seed ${seed}${bugText}\n`)
      return 1
    }
    printProgress(seed - first + 1)
  }
  const seconds = (performance.now() - begun) / 1000
  process.stdout.write(
    `${seeds - failed} of ${seeds} seeds passed: ${deaths} deaths, ${events} events; ` +
      `${seconds.toFixed(1)} s, ${(seeds / seconds).toFixed(1)} seeds/s.\n`
  )
  return failed === 0 ? 0 : 1
}

function printProgress(done: number): void {
  const isTerminal = process.stderr.isTTY === true
  if (done % (isTerminal ? 50 : 500) !== 0) return
  process.stderr.write(isTerminal ? `\r${done} of ${seeds}` : `${done} of ${seeds}\n`)
}

async function prove(): Promise<number> {
  const foundBy: Record<string, number> = {}
  for (const bug of Object.keys(mistakes)) {
    const found = await firstThatFinds(bug, first, PROVE_SEEDS_MAX)
    const verdict = found === undefined ? `NOT FOUND in ${PROVE_SEEDS_MAX} seeds` : `seed ${found.seed}`
    process.stdout.write(`${bug.padEnd(24)} ${verdict}\n`)
    if (found === undefined) continue
    foundBy[bug] = found.seed
    process.stdout.write(`${' '.repeat(25)}${found.faults[0]?.slice(0, 160)}\n`)
  }
  if (Object.keys(foundBy).length < Object.keys(mistakes).length) return 1
  if (options.write === true) writeFoundBy(foundBy)
  return 0
}

function print({ seed, faults, trace }: Outcome): void {
  process.stdout.write(`seed ${seed}: ${faults.length === 0 ? 'passed' : 'FAILED'}\n`)
  for (const line of trace.slice(-TRACE_LINES)) process.stdout.write(`  ${line}\n`)
  for (const fault of faults) process.stdout.write(`${fault}\n`)
}
