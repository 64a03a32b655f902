import { boardKey } from '@gamenet/schemas'
import type { z } from 'zod'
import type { ReadTables } from '../read-tables.js'
import { describedBoards } from './leaderboard.js'
import { rowsOf } from './query.js'

/** What lists say of a board. */
export type BoardFact = z.infer<(typeof describedBoards)['row']>

/** A board as paths and rows name it. */
export type BoardId = Pick<BoardFact, 'titleId' | 'leaderboardId'>

/** What lists say of all boards, at one moment. */
export type Boards = {
  /** What is said now; undefined for a board that no list ever told of. */
  byId(board: BoardId): BoardFact | undefined
  /** What the board is called now; `""` for one that no list ever told of. */
  nameOf(board: BoardId): string
}

/**
 * Keeps what lists say of boards in memory, some hundred bytes each: nearly every answer about boards needs a few names, and
 * a statement costs 5 ms whatever it asks. The table is asked again only when the data version of the boards has moved.
 */
export function boardCache(needs: {
  readonly tables: ReadTables
  versionOf(dependency: { projection: string }): number
}): () => Promise<Boards> {
  let current: { readonly version: number; readonly boards: Boards } | undefined
  let loading: { readonly version: number; readonly boards: Promise<Boards> } | undefined

  const load = async (version: number): Promise<Boards> => {
    const boards = boardsOf(await rowsOf(needs.tables, describedBoards, {}))
    if (current === undefined || current.version < version) current = { version, boards }
    return boards
  }

  return () => {
    const version = needs.versionOf({ projection: 'leaderboard' })
    if (current?.version === version) return Promise.resolve(current.boards)
    if (loading?.version === version) return loading.boards
    const mine = { version, boards: load(version) }
    loading = mine
    const done = (): void => {
      if (loading === mine) loading = undefined
    }
    mine.boards.then(done, done)
    return mine.boards
  }
}

/** Boards by what the tables say of them. */
export function boardsOf(facts: readonly BoardFact[]): Boards {
  const byKey = new Map(facts.map((fact) => [boardKey(fact), fact]))
  const byId = (board: BoardId) => byKey.get(boardKey(board))
  return { byId, nameOf: (board) => byId(board)?.name ?? '' }
}
