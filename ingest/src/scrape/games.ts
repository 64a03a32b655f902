import { titleStatusTopic, titleTopic } from '@gamenet/schemas'
import type { Source } from '../fetch/reading.js'
import type { PageParsing } from '../pages/page-parsing.js'
import { publication } from '../publish/publish.js'
import { createPublishedTitles, titlesOf } from '../sources/title.js'
import { listOf, type TitleRoster } from '../sources/title-status.js'
import { createPageReader } from './page-reader.js'

/** The page of all supported games: descriptions of titles. */
export function gamesSource(parsing: PageParsing, roster: TitleRoster): Source {
  const readPage = createPageReader('/games', (html, address) => parsing.parse('games', html, address))
  const published = createPublishedTitles()
  return {
    name: 'games',
    async read({ fetcher }, signal) {
      const read = await readPage(fetcher, signal)
      if (!read.ok) return read
      const titles = titlesOf(read.page.titles, read.observedAt)
      const gaps = read.page.unreadable
      const statuses = await roster.changes(listOf(titles, read.observedAt, gaps), signal)
      return {
        ok: true,
        publications: [publication(titleTopic, published.changed(titles)), publication(titleStatusTopic, statuses)],
        gaps,
        onPublished: () => {
          published.remember(titles)
          roster.remember(statuses)
        }
      }
    }
  }
}
