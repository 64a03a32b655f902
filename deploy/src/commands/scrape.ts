import { SCRAPE_SOURCES, type ScrapeSource } from '@gamenet/schemas'
import { Argument, type Command } from 'commander'
import type { ScrapeReport } from '../operator/operations.js'
import { withOperations } from './reach.js'
import { addCommand, print, type Terminal } from './terminal.js'

const SOURCES_OF_MANY_PAGES: readonly string[] = ['matches', 'boards'] satisfies ScrapeSource[]

export function addScrape(program: Command, terminal: Terminal): void {
  addCommand(program, 'scrape', 'read upstream pages once, now; exit code 1 when a page failed')
    .addArgument(new Argument('<source>', 'what to read').choices([...SCRAPE_SOURCES, 'all']))
    .action(async (source: string, options: { json?: boolean }) => {
      const reports = await withOperations(terminal, (operations) => operations.scrape(source))
      print(terminal, options.json, reports, reports.map(lineOf))
      if (reports.some(hasFailedPage)) terminal.exitCode = 1
    })
}

/** A run of one page is partial when rows of it cannot be read; one of many pages, when whole pages cannot. */
function hasFailedPage({ source, outcome }: ScrapeReport): boolean {
  return outcome === 'failed' || (outcome === 'partial' && SOURCES_OF_MANY_PAGES.includes(source))
}

function lineOf(report: ScrapeReport): string {
  const took = `${report.source}: ${report.outcome} at ${report.observedAt} in ${report.durationMs} ms`
  return `${took}, ${report.published} events published${report.reason === undefined ? '' : `; ${report.reason}`}`
}
