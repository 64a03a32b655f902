import { networkCountTopic, titleCountTopic, titleStatusTopic, titleTopic } from '@gamenet/schemas'
import type { HomePage } from '../pages/home-page.js'
import type { PageParsing } from '../pages/page-parsing.js'
import { publication } from '../publish/publish.js'
import { networkCountOf } from '../sources/network-count.js'
import { createPublishedTitles, titlesOf } from '../sources/title.js'
import { titleCountsOf } from '../sources/title-count.js'
import { listOf, type TitleRoster } from '../sources/title-status.js'
import { createPageReader } from './page-reader.js'
import type { Source } from './reading.js'

/** The home page: the network's counts, every title's counts, and what its rows say about the titles. */
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
      const gaps = [...page.unreadable, ...missingRows.newIn(page)]
      const titles = titlesOf(page.titles, observedAt)
      const statuses = await roster.changes(listOf(titles, observedAt, gaps), signal)
      return {
        ok: true,
        publications: [
          publication(titleTopic, published.changed(titles)),
          publication(titleStatusTopic, statuses),
          publication(titleCountTopic, titleCountsOf(page, observedAt)),
          publication(networkCountTopic, [networkCountOf(page, observedAt, gaps.length === 0)])
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
 * Watches the rows against the number of supported games that the page states. The two need not agree (the rows
 * are the truth), but when they come further apart from one page to the next, rows got lost: the sum of lobbies
 * is then left out, once. If the gap stays, that is how the page is now.
 */
function createMissingRows(): { newIn(page: HomePage): string[] } {
  let usual: number | undefined
  return {
    newIn(page) {
      if (page.unreadable.length > 0) return []
      const missing = page.gamesSupported - page.titles.length
      const before = usual
      usual = missing
      if (before === undefined || missing <= Math.max(before, 0)) return []
      const shown = page.titles.length
      return [`the table shows ${shown} of ${page.gamesSupported} games, fewer than the page before did`]
    }
  }
}
