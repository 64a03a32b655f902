import { boardKey, type ServingTables, withServing } from '@gamenet/schemas'
import type { z } from 'zod'
import type { ReadTables } from '../read-tables.js'
import { describedBoards } from './leaderboard.js'
import { rowsOf } from './query.js'
import { servingCache, versionedCache } from './versioned-cache.js'

/** The description of a board by lists. */
export type BoardDescription = z.infer<(typeof describedBoards)['row']>

/** The identity of a board in paths and rows. */
export type BoardId = Pick<BoardDescription, 'titleId' | 'leaderboardId'>

/** The descriptions of all boards at one data version. */
export type Boards = {
  /** The newest description; undefined for a board without one. */
  byId(board: BoardId): BoardDescription | undefined
  /** All descriptions. */
  all(): readonly BoardDescription[]
  /** The current name; `""` for a board without a description. */
  nameOf(board: BoardId): string
}

/**
 * Caches the descriptions of all boards, some hundred bytes each: nearly every answer about boards needs a few names,
 * and a statement takes at least 5 ms.
 */
export function boardDescriptionCache(needs: {
  readonly tables: ReadTables
  versionOf(dependency: { projection: string }): number
}): (serving: ServingTables) => Promise<Boards> {
  const caches = servingCache((serving) =>
    versionedCache(
      () => needs.versionOf({ projection: 'leaderboard' }),
      async () => boardsOf(await rowsOf(withServing(needs.tables, serving), describedBoards, {}))
    )
  )
  return (serving) => caches(serving)()
}

/** Returns lookups over descriptions. */
export function boardsOf(facts: readonly BoardDescription[]): Boards {
  const byKey = new Map(facts.map((fact) => [boardKey(fact), fact]))
  const byId = (board: BoardId) => byKey.get(boardKey(board))
  return { byId, all: () => facts, nameOf: (board) => byId(board)?.name ?? '' }
}
