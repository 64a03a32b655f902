import { boardKey, LeaderboardDays, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import type { Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import type { BoardId } from '../queries/board-descriptions.js'
import { firstSight } from '../queries/leaderboard.js'
import { boardDays } from '../queries/leaderboard-day.js'
import { rowsOf } from '../queries/query.js'
import { boardParameter, gameParameter, knownBoard, knownGame } from './known-game.js'

/** `GET /api/game/:game/leaderboards/:leaderboardId/days`: when a board changed. */
export const leaderboardDays: Endpoint<{ game: string; leaderboardId: number }, BoardId> = {
  operationId: 'getLeaderboardDays',
  path: '/api/game/:game/leaderboards/:leaderboardId/days',
  tags: ['Leaderboards'],
  summary: 'The days on which a leaderboard changed',
  description:
    'When the board was first seen, and each day in UTC on which entries came, left or got another rating, oldest ' +
    'first.',
  input: z.object({ game: gameParameter, leaderboardId: boardParameter }),
  resolve: async ({ game, leaderboardId }, context) => ({ titleId: await knownGame(game, context), leaderboardId }),
  reads: ({ titleId, leaderboardId }) => [
    { projection: 'leaderboard-history', key: boardKey({ titleId, leaderboardId }) },
    { projection: 'leaderboard', key: titleId },
    { projection: 'title', key: titleId }
  ],
  answer: async (board, context) => {
    const { tables, signal } = context
    const [days, [sight]] = await Promise.all([
      rowsOf(tables, boardDays, board, { signal }),
      rowsOf(tables, firstSight, board, { signal })
    ])
    const firstMs = sight?.firstMs ?? null
    const { gameName, name, listed } = await knownBoard(board, null, context, async () => firstMs !== null)
    const { titleId, leaderboardId } = board
    const firstSeenAt = shownInstant(firstMs ?? 0)
    return { body: { titleId, gameName, leaderboardId: String(leaderboardId), name, listed, firstSeenAt, days } }
  },
  table: listIn(LeaderboardDays, 'days'),
  response: LeaderboardDays,
  refuses: ['game_unknown', 'leaderboard_unknown']
}
