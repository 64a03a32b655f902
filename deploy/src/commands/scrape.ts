import { SCRAPE_SOURCES } from '@gamenet/schemas'
import { Argument, type Command } from 'commander'
import type { ScrapeReport } from '../operator/operations.js'
import { withOperations } from './reach.js'
import { addCommand, print, type Terminal } from './terminal.js'

export function addScrape(program: Command, terminal: Terminal): void {
  addCommand(program, 'scrape', 'read upstream pages once, now; exit code 1 when a page failed')
    .addArgument(new Argument('<source>', 'what to read').choices([...SCRAPE_SOURCES, 'all']))
    .action(async (source: string, options: { json?: boolean }) => {
      const reports = await withOperations(terminal, (operations) => operations.scrape(source))
      print(terminal, options.json, reports, reports.map(lineOf))
      if (reports.some((report) => report.outcome === 'failed')) terminal.exitCode = 1
    })
}

function lineOf(report: ScrapeReport): string {
  const took = `${report.source}: ${report.outcome} at ${report.observedAt} in ${report.durationMs} ms`
  return `${took}, ${report.published} events published${report.reason === undefined ? '' : `; ${report.reason}`}`
}
