import type { AnswerContext } from '../answers/answer.js'
import type { AskedBoard } from './known-game.js'

/** What names boards now; `""` for one that no list ever told of. */
export async function boardNames({ boards }: Pick<AnswerContext, 'boards'>): Promise<(board: AskedBoard) => string> {
  const known = await boards()
  return (board) => known.byId(board)?.name ?? ''
}
