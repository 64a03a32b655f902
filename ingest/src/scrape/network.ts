import { networkCountTopic, titleCountTopic, titleStatusTopic, titleTopic } from '@gamenet/schemas'
import type { Source } from '../fetch/reading.js'
import type { HomePage } from '../pages/home-page.js'
import type { PageParsing } from '../pages/page-parsing.js'
import { publication } from '../publish/publish.js'
import { networkCountOf } from '../sources/network-count.js'
import { createPublishedTitles, titlesOf } from '../sources/title.js'
import { titleCountsOf } from '../sources/title-count.js'
import { listOf, type TitleRoster } from '../sources/title-status.js'
import { createPageReader } from './page-reader.js'

/** The home page: counts of the network and of every title, and descriptions of titles. */
export function networkSource(parsing: PageParsing, roster: TitleRoster): Source {
  const readPage = createPageReader('/', (html, address) => parsing.parse('home', html, address))
  const published = createPublishedTitles()
  const missingRows = createMissingRows()
  return {
    name: 'network',
    async read({ fetcher }, signal) {
      const read = await readPage(fetcher, signal)
      if (!read.ok) return read
      const { page, observedAt } = read
      const missing = [...page.unreadable, ...missingRows.newIn(page)]
      const gaps = [...missing, ...page.incomplete]
      const titles = titlesOf(page.titles, observedAt)
      const statuses = await roster.changes(listOf(titles, observedAt, missing), signal)
      return {
        ok: true,
        publications: [
          publication(titleTopic, published.changed(titles)),
          publication(titleStatusTopic, statuses),
          publication(titleCountTopic, titleCountsOf(page, observedAt)),
          publication(networkCountTopic, [networkCountOf(page, observedAt, missing.length === 0)])
        ],
        gaps,
        onPublished: () => {
          published.remember(titles)
          roster.remember(statuses)
        }
      }
    }
  }
}

/**
 * Compares the number of rows with the number of supported games that the page states. The two may differ (the rows
 * count), but a growing difference between two pages means lost rows: the sum of lobbies is then left out once. A
 * lasting difference is accepted.
 */
function createMissingRows(): { newIn(page: HomePage): string[] } {
  let usual: number | undefined
  return {
    newIn(page) {
      if (page.unreadable.length > 0 || page.gamesSupported === undefined) return []
      const missing = page.gamesSupported - page.titles.length
      const before = usual
      usual = missing
      if (before === undefined || missing <= Math.max(before, 0)) return []
      const shown = page.titles.length
      return [`the table shows ${shown} of ${page.gamesSupported} games, fewer than the previous page`]
    }
  }
}
