import { SCRAPE_SOURCES, type ScrapeSource } from '@gamenet/schemas'
import { Argument, type Command } from 'commander'
import { withOperations } from '../../reach.js'
import { type Progress, showProgress } from '../../terminal/progress.js'
import { addCommand, counted, print, type Terminal } from '../../terminal/terminal.js'
import { type ScrapeProgress, type ScrapeReport, scrape } from './operation.js'

const SOURCES_OF_MANY_PAGES: readonly string[] = ['matches', 'boards'] satisfies ScrapeSource[]

export function addScrape(program: Command, terminal: Terminal): void {
  addCommand(program, 'scrape', 'read upstream pages once, now; exit code 1 when a page failed')
    .addArgument(new Argument('<source>', 'what to read').choices([...SCRAPE_SOURCES, 'all']))
    .action(async (source: string, options: { json?: boolean }) => {
      const display = showProgress(terminal, options.json !== true)
      const onProgress = (progress: ScrapeProgress) => display.update(progressOf(progress))
      const reports = await withOperations(terminal, (operations) =>
        operations.run(scrape, { source }, { onProgress })
      ).finally(display.stop)
      print(terminal, options.json, reports, reports.map(lineOf))
      if (reports.some(hasFailedPage)) terminal.exitCode = 1
    })
}

/** Totals rise as lists of boards are read. */
function progressOf({ source, done, total }: ScrapeProgress): Progress {
  return {
    line: source,
    label: source,
    share: done / Math.max(1, total),
    details: [`${done} of ${counted(total, 'page')}`]
  }
}

/**
 * Returns whether whole pages failed: a run of one page is partial because of rows, a run of many pages because of
 * pages.
 */
function hasFailedPage({ source, outcome }: ScrapeReport): boolean {
  return outcome === 'failed' || (outcome === 'partial' && SOURCES_OF_MANY_PAGES.includes(source))
}

function lineOf(report: ScrapeReport): string {
  const took = `${report.source}: ${report.outcome} at ${report.observedAt} in ${report.durationMs} ms`
  const why = report.reason === undefined ? '' : `; ${report.reason}`
  return `${took}, ${counted(report.published, 'event')} published${why}`
}
