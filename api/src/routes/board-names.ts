import { boardKey } from '@gamenet/schemas'
import type { AnswerContext } from '../answers/answer.js'
import { namesOfBoards } from '../queries/leaderboard.js'
import { rowsOf } from '../queries/query.js'
import type { AskedBoard } from './known-game.js'

/** The names of the boards of some rows; `""` for a board that no list ever told of. */
export async function boardNames(
  boards: readonly AskedBoard[],
  { tables, signal }: Pick<AnswerContext, 'tables' | 'signal'>
): Promise<(board: AskedBoard) => string> {
  const distinct = [...new Map(boards.map((board) => [boardKey(board), board])).values()]
  if (distinct.length === 0) return () => ''
  const params = {
    titleIds: distinct.map(({ titleId }) => titleId),
    leaderboardIds: distinct.map(({ leaderboardId }) => leaderboardId)
  }
  const named = await rowsOf(tables, namesOfBoards, params, { signal })
  const names = new Map(named.map((board) => [boardKey(board), board.name]))
  return (board) => names.get(boardKey(board)) ?? ''
}
