import { titleTopic } from '@gamenet/schemas'
import type { PageParsing } from '../pages/page-parsing.js'
import { publication } from '../publish/publish.js'
import { createPublishedTitles, titlesOf } from '../sources/title.js'
import { createPageReader } from './page-reader.js'
import type { Source } from './reading.js'

/** The page of all supported games: what its rows say about the titles. */
export function gamesSource(parsing: PageParsing): Source {
  const readPage = createPageReader('/games', (html, address) => parsing.parse('games', html, address))
  const published = createPublishedTitles()
  return {
    name: 'games',
    async read({ fetcher }, signal) {
      const read = await readPage(fetcher, signal)
      if (!read.ok) return read
      const titles = titlesOf(read.page.titles, read.observedAt)
      return {
        ok: true,
        publications: [publication(titleTopic, published.changed(titles))],
        gaps: read.page.unreadable,
        onPublished: () => published.remember(titles)
      }
    }
  }
}
