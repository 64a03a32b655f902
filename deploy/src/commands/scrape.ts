import { SCRAPE_SOURCES, type ScrapeSource } from '@gamenet/schemas'
import cliProgress from 'cli-progress'
import { Argument, type Command } from 'commander'
import { type ScrapeProgress, type ScrapeReport, scrape } from '../operations/scrape.js'
import { barFormat } from './bar-format.js'
import { withOperations } from './reach.js'
import { addCommand, print, type Terminal } from './terminal.js'

const SOURCES_OF_MANY_PAGES: readonly string[] = ['matches', 'boards'] satisfies ScrapeSource[]
const PLAIN_PROGRESS_MS = 5000

export function addScrape(program: Command, terminal: Terminal): void {
  addCommand(program, 'scrape', 'read upstream pages once, now; exit code 1 when a page failed')
    .addArgument(new Argument('<source>', 'what to read').choices([...SCRAPE_SOURCES, 'all']))
    .action(async (source: string, options: { json?: boolean }) => {
      const progress = options.json === true ? undefined : showProgress(terminal)
      const reports = await withOperations(terminal, (operations) =>
        operations.run(scrape, { source }, progress === undefined ? {} : { onProgress: progress.update })
      ).finally(() => progress?.stop())
      print(terminal, options.json, reports, reports.map(lineOf))
      if (reports.some(hasFailedPage)) terminal.exitCode = 1
    })
}

/** Bars on a terminal, plain lines now and then elsewhere: one for each source of many pages. */
function showProgress({ errors }: Terminal) {
  if (!errors.isTTY) return plainProgress(errors)
  const bars = new Map<string, cliProgress.SingleBar>()
  const all = new cliProgress.MultiBar(
    {
      format: barFormat('{source} {bar} {percentage} % | {value} of {total} pages | {eta_formatted} left'),
      clearOnComplete: true,
      stream: errors
    },
    cliProgress.Presets.shades_classic
  )
  const update = ({ source, done, total }: ScrapeProgress) => {
    const bar = bars.get(source) ?? all.create(total, done, { source })
    bars.set(source, bar)
    // How many pages there are becomes known as lists of boards are read.
    bar.setTotal(total)
    bar.update(done)
  }
  return { update, stop: () => all.stop() }
}

function plainProgress(errors: Terminal['errors']) {
  const saidAt = new Map<string, number>()
  const beganAt = Date.now()
  const update = ({ source, done, total }: ScrapeProgress) => {
    if (Date.now() - (saidAt.get(source) ?? beganAt) < PLAIN_PROGRESS_MS) return
    saidAt.set(source, Date.now())
    errors.write(`${source}: ${done} of ${total} pages\n`)
  }
  return { update, stop: () => {} }
}

/** A run of one page is partial when rows of it cannot be read; one of many pages, when whole pages cannot. */
function hasFailedPage({ source, outcome }: ScrapeReport): boolean {
  return outcome === 'failed' || (outcome === 'partial' && SOURCES_OF_MANY_PAGES.includes(source))
}

function lineOf(report: ScrapeReport): string {
  const took = `${report.source}: ${report.outcome} at ${report.observedAt} in ${report.durationMs} ms`
  return `${took}, ${report.published} events published${report.reason === undefined ? '' : `; ${report.reason}`}`
}
