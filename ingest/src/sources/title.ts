import type { TitleDescribed } from '@gamenet/schemas'
import type { CountedTitle } from '../pages/home-page.js'
import type { ListedTitle } from '../pages/title-table.js'

/** Returns a page's descriptions of titles. Values that it omits are absent and change nothing. */
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

/** The descriptions that one source has published since the process started. */
export type PublishedTitles = {
  /** Returns the descriptions that differ from the last published ones; all of them after a start. */
  changed(titles: readonly TitleDescribed[]): TitleDescribed[]
  /**
   * Called with all descriptions of a page when the log has the changed ones. Titles that are not on the page are
   * dropped, which bounds the memory to one page.
   */
  remember(titles: readonly TitleDescribed[]): void
}

/**
 * Each source keeps its own: two pages with different descriptions of a title would otherwise both publish on every
 * run.
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

const description = ({ observedAt: _, ...described }: TitleDescribed): string => JSON.stringify(described)
