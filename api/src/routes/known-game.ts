import { Refusal, shownInstant } from '@gamenet/schemas'
import type { AnswerContext, ResolveContext } from '../answers/endpoint.js'
import type { BoardId } from '../queries/board-descriptions.js'
import { type Catalog, isTitleId, type Title } from '../queries/catalog.js'
import { boardDescription, firstSight, knownDescription } from '../queries/leaderboard.js'
import { knownSights } from '../queries/leaderboard-entry.js'
import { nearestNames } from '../queries/nearest-names.js'
import { rowsOf } from '../queries/query.js'
import { integer, shown, text } from '../request/parameters.js'

const NEAREST_MAX = 3

/** The path parameter `:game`. */
export const gameParameter = text({ example: 'Halo 3' }).describe('A title id, or a game’s name, percent-encoded.')

/** The path parameter `:titleId`. */
export const titleParameter = text({ example: '4d5307e6' }).describe(
  'The title’s id, 8 hexadecimal digits of any case, or its name.'
)

/** The path parameter `:leaderboardId`. */
export const boardParameter = integer({ min: 0, max: 4_294_967_295 }).meta({
  description: 'The board’s number within its game.',
  example: 1
})

/** Returns the id of the title that a path or a query names. Refuses an unknown title. */
export async function knownGame(game: string, { catalog }: Pick<ResolveContext, 'catalog'>): Promise<string> {
  const titles = await catalog()
  const title = titles.byGame(game)
  if (title === undefined) throw unknownGame(game, titles)
  return title.titleId
}

/** Returns the title of an id or a name. Refuses an unknown title. */
export async function knownTitle(idOrName: string, { catalog }: Pick<ResolveContext, 'catalog'>): Promise<Title> {
  const titles = await catalog()
  const title = titles.byGame(idOrName)
  if (title !== undefined) return title
  throw isTitleId(idOrName) ? new Refusal('title_unknown', [idOrName.toLowerCase()]) : unknownGame(idOrName, titles)
}

/** Returns the refusal of an unknown game, with the names nearest to it. */
export function unknownGame(game: string, titles: Catalog): Refusal {
  const names = isTitleId(game) ? [] : titles.described().map(({ shownName }) => shownName)
  const nearest = nearestNames(game, names, NEAREST_MAX).map(shown)
  return new Refusal('game_unknown', [shown(game), nearest.length === 0 ? '' : `; the nearest: ${nearest.join(', ')}`])
}

/**
 * Returns a board's description as of an instant, or now. Refuses an unknown board, and one that was first seen later.
 */
export async function knownBoard(
  board: BoardId,
  asOfMs: number | null,
  context: AnswerContext,
  hasEntries: () => Promise<boolean>
): Promise<{ gameName: string; name: string; listed: boolean }> {
  const [described, titles] = await Promise.all([describedBoard(board, asOfMs, context), context.catalog()])
  const gameName = titles.named(board.titleId).shownName
  if (described !== undefined) return { gameName, ...described }
  if (!(await hasEntries())) {
    const [sight] = await rowsOf(context.tables, firstSight, board, { signal: context.signal })
    const named = [String(board.leaderboardId), JSON.stringify(gameName)]
    const firstMs = sight?.firstMs ?? null
    if (firstMs === null) throw new Refusal('leaderboard_unknown', named)
    if (asOfMs !== null && asOfMs < firstMs) {
      const instants = [firstMs, asOfMs].map((ms) => new Date(ms).toISOString())
      throw new Refusal('leaderboard_not_yet_seen', [...named, ...instants])
    }
  }
  return { gameName, name: '', listed: false }
}

/**
 * Returns a board's description as known at an instant. Refuses a board about which nothing up to `atMs` was known
 * then.
 */
export async function knownBoardAt(
  board: BoardId,
  { atMs: at, knownAtMs: knownAt }: { readonly atMs: number; readonly knownAtMs: number },
  { tables, signal, catalog }: AnswerContext
): Promise<{ gameName: string; name: string; listed: boolean }> {
  const asked = { ...board, at, knownAt }
  const [[described], titles] = await Promise.all([rowsOf(tables, knownDescription, asked, { signal }), catalog()])
  const gameName = titles.named(board.titleId).shownName
  if (described !== undefined) return { gameName, ...described }
  const [sights] = await rowsOf(tables, knownSights, asked, { signal })
  if (sights?.events !== 0) return { gameName, name: '', listed: false }
  const named = [String(board.leaderboardId), JSON.stringify(gameName)]
  const [sight] = await rowsOf(tables, firstSight, board, { signal })
  if (typeof sight?.firstMs !== 'number') throw new Refusal('leaderboard_unknown', named)
  throw new Refusal('leaderboard_not_yet_known', [...named, ...[Math.min(at, knownAt), knownAt].map(shownInstant)])
}

/**
 * Returns the description of a board. Reads the table only for an instant between its first and its newest description.
 */
async function describedBoard(
  board: BoardId,
  asOfMs: number | null,
  { tables, signal, boards }: AnswerContext
): Promise<{ name: string; listed: boolean } | undefined> {
  const fact = (await boards()).byId(board)
  if (fact === undefined || (asOfMs !== null && asOfMs < fact.firstMs)) return undefined
  if (asOfMs === null || asOfMs >= fact.newestMs) return { name: fact.name, listed: fact.listed }
  const [described] = await rowsOf(tables, boardDescription, { ...board, at: asOfMs }, { signal })
  return described
}

/** Refuses an instant in the future. */
export function requirePast(name: string, ms: number, nowMs: number): void {
  if (ms > nowMs) throw new Refusal('instant_in_future', [name, new Date(ms).toISOString()])
}
