import type { TitleDescribed } from '@gamenet/schemas'
import type { CountedTitle } from '../pages/home-page.js'
import type { ListedTitle } from '../pages/title-table.js'

/** What a page says about its titles; what it leaves out is absent and changes nothing. */
export function titlesOf(titles: readonly (ListedTitle | CountedTitle)[], observedAt: string): TitleDescribed[] {
  return titles.map((listed) => ({
    titleId: listed.titleId,
    observedAt,
    name: listed.name,
    ...(listed.subtitle !== undefined && { title: listed.subtitle }),
    ...(listed.image !== undefined && { image: listed.image }),
    ...(listed.productCode !== undefined && { productCode: listed.productCode }),
    ...('features' in listed && listed.features !== undefined && { features: [...listed.features] })
  }))
}

/** What one source has published of its titles since the process started. */
export type PublishedTitles = {
  /** The descriptions that say something else than the one published last; all of them after a start. */
  changed(titles: readonly TitleDescribed[]): TitleDescribed[]
  /**
   * To be called with a whole page's descriptions once the log has the changed ones. Titles that are not on the
   * page are dropped, so the memory is bounded by one page.
   */
  remember(titles: readonly TitleDescribed[]): void
}

/**
 * Each source keeps its own: two pages that describe a title differently would otherwise take turns in
 * publishing their view on every run.
 */
export function createPublishedTitles(): PublishedTitles {
  let published = new Map<string, string>()
  return {
    changed: (titles) => titles.filter((title) => published.get(title.titleId) !== description(title)),
    remember: (titles) => {
      published = new Map(titles.map((title) => [title.titleId, description(title)]))
    }
  }
}

function description({ observedAt: _, ...described }: TitleDescribed): string {
  return JSON.stringify(described)
}
