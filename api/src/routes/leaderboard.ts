import { LeaderboardSummary, Leaderboards } from '@gamenet/schemas'
import { z } from 'zod'
import type { Endpoint } from '../answers/endpoint.js'
import { listOf } from '../answers/table.js'
import { boardTotals, listedBoards } from '../queries/leaderboard.js'
import { rowsOf } from '../queries/query.js'
import { gameParameter, knownGame } from './known-game.js'

const TAGS = ['Leaderboards']
/** `GET /api/game/:game/leaderboard-summary`: how many boards and entries a game has. */
export const leaderboardSummary: Endpoint<{ game: string }, { titleId: string }> = {
  operationId: 'getLeaderboardSummary',
  path: '/api/game/:game/leaderboard-summary',
  tags: TAGS,
  summary: 'Leaderboards of a game, counted',
  description: 'The number of boards that the game lists now, and of their current entries.',
  input: z.object({ game: gameParameter }),
  resolve: async ({ game }, context) => ({ titleId: await knownGame(game, context) }),
  reads: ({ titleId }) => [
    { projection: 'leaderboard', key: titleId },
    { projection: 'leaderboard-entry' },
    { projection: 'title', key: titleId }
  ],
  answer: async ({ titleId }, { tables, signal, catalog }) => {
    const [totals, titles] = await Promise.all([rowsOf(tables, boardTotals, { titleId }, { signal }), catalog()])
    const { boards = 0, entries = 0, times = 0 } = totals[0] ?? {}
    return {
      body: {
        titleId,
        gameName: titles.named(titleId).shownName,
        leaderboard_count: boards,
        total_entries: entries,
        time_entries: times,
        score_entries: entries - times
      }
    }
  },
  response: LeaderboardSummary,
  refuses: ['game_unknown']
}

/** `GET /api/game/:game/leaderboards`: the boards of a game. */
export const leaderboards: Endpoint<{ game: string }, { titleId: string }> = {
  operationId: 'getLeaderboards',
  path: '/api/game/:game/leaderboards',
  tags: TAGS,
  summary: 'Leaderboards of a game',
  description: 'The boards that the game lists now, by id. A board that is no longer listed can still be requested.',
  input: z.object({ game: gameParameter }),
  resolve: async ({ game }, context) => ({ titleId: await knownGame(game, context) }),
  reads: ({ titleId }) => [
    { projection: 'leaderboard', key: titleId },
    { projection: 'title', key: titleId }
  ],
  answer: async ({ titleId }, { tables, signal, catalog }) => {
    const [boards, titles] = await Promise.all([rowsOf(tables, listedBoards, { titleId }, { signal }), catalog()])
    const gameName = titles.named(titleId).shownName
    return { body: boards.map(({ id, name }) => ({ id, name, titleId, gameName })) }
  },
  table: listOf(Leaderboards),
  response: Leaderboards,
  refuses: ['game_unknown']
}
