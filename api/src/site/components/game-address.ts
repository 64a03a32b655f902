import { nameKey } from '@gamenet/schemas'
import type { ResolveContext } from '../../answers/endpoint.js'
import { isTitleId, type Title } from '../../queries/catalog.js'
import { knownTitle } from '../../routes/known-game.js'
import { type Query, Redirect } from '../values/page.js'
import { gamePath, slugOf, withQuery } from './text.js'

/**
 * Returns the title of an address. A name or another spelling of the id or slug is redirected to the one address, with
 * what follows it; a name that several titles share leads to the search, which asks which.
 */
export async function addressedTitle(
  { game, slug }: { readonly game: string; readonly slug?: string | undefined },
  { query, ...context }: Pick<ResolveContext, 'catalog'> & { readonly query: Query },
  rest = ''
): Promise<Title> {
  const titles = await context.catalog()
  if (!isTitleId(game)) {
    const same = titles.described().filter(({ name }) => nameKey(name) === nameKey(game))
    if (same.length > 1) throw new Redirect(withQuery('/search', { q: game }), 302)
  }
  const title = await knownTitle(game, context)
  const wanted = slugOf(title.name)
  if (title.titleId !== game || slug !== wanted) {
    throw new Redirect(withQuery(gamePath(title) + rest, query))
  }
  return title
}
