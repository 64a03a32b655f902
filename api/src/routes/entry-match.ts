import { type EntryMatch, timeText } from '@gamenet/schemas'
import type { AnswerContext, Dependency, ResolveContext } from '../answers/endpoint.js'
import type { EntryRow } from '../queries/player-entry.js'
import { digestOf } from '../request/etag.js'
import { knownTitle } from './known-game.js'

export const SEARCH_TAGS = ['Search']

/** Returns the id of the title to search, "" for all titles. Refuses an unknown one. */
export async function titleFilter(titleId: string | undefined, context: ResolveContext): Promise<string> {
  return titleId === undefined ? '' : (await knownTitle(titleId, context)).titleId
}

/** Returns the dependencies of every search besides the entries: the names of boards and titles. */
export function readsNames(titleId: string): Dependency[] {
  const ofTitle = titleId === '' ? {} : { key: titleId }
  return [
    { projection: 'leaderboard', ...ofTitle },
    { projection: 'title', ...ofTitle }
  ]
}

/** Returns entries with the names of their boards and titles. */
export async function entryMatches(rows: readonly EntryRow[], context: AnswerContext): Promise<EntryMatch[]> {
  const [boards, titles] = await Promise.all([context.boards(), context.catalog()])
  return rows.map((row) => ({
    id: idOf(row),
    leaderboard_id: row.leaderboardId,
    leaderboard_name: boards.nameOf(row),
    title_id: row.titleId,
    game_name: titles.named(row.titleId).shownName,
    player_name: row.playerName,
    rank: row.rank,
    rating: row.rating,
    time_ms: row.timeMs ?? 0,
    time_formatted: row.timeMs === null ? '' : timeText(row.timeMs),
    is_time: row.timeMs !== null
  }))
}

/** Returns the id of an entry, 16 characters: readable ids with names of 500 characters would be half of the answer. */
function idOf({ titleId, leaderboardId, playerName, occurrence }: EntryRow): string {
  return digestOf(JSON.stringify([titleId, leaderboardId, playerName, occurrence]), 16)
}
