import { boardKey, INSTANTS_END_MS, LeaderboardRecords, nameKey, RecentRecords, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { listIn, listOf } from '../answers/table.js'
import type { BoardId } from '../queries/board-descriptions.js'
import { rowsOf } from '../queries/query.js'
import { boardRecords, FoldedRecords, knownStates, recentRecords } from '../queries/record-history.js'
import { nextLink } from '../reply/next-link.js'
import { integer, KNOWN_AT, knownAt, oneOf, playerName, zoneOfDays } from '../request/parameters.js'
import { boardParameter, gameParameter, knownBoard, knownBoardAt, knownGame, requirePast } from './known-game.js'
import { readsOfKnownBoard } from './leaderboard-entry.js'
import { measureShown } from './shown-measure.js'

const TAGS = ['Leaderboards']
const RECORDS_MAX = 10_000

/** `contested`, of lists of records and of the stream. */
export const contestedParameter = oneOf(['true', 'false'])
  .default('false')
  .describe('`true`: only records that beat a former one, no first sightings.')

type RecordsInput = {
  game: string
  leaderboardId: number
  limit?: number | undefined
  offset: number
  knownAt?: number | undefined
}
type RecordsRequest = BoardId & { limit: number | null; offset: number; knownAtMs?: number }

/** `GET /api/game/:game/leaderboards/:leaderboardId/records`: the reigns of a board's record. */
export const leaderboardRecords: Endpoint<RecordsInput, RecordsRequest> = {
  operationId: 'getLeaderboardRecords',
  path: '/api/game/:game/leaderboards/:leaderboardId/records',
  tags: TAGS,
  summary: 'The record of a leaderboard and its history',
  description:
    'Each reign of the record, oldest first: who held it, since when, until when. If the holder was removed, the ' +
    'best remaining entry holds it from then on; its `setAt` is earlier than its `fromAt`.',
  input: z.object({
    game: gameParameter,
    leaderboardId: boardParameter,
    limit: integer({ min: 1, max: RECORDS_MAX }).optional().describe('Maximum number of reigns; default: all.'),
    offset: integer({ min: 0, max: 1_000_000_000 }).default(0).describe('Number of reigns to skip at the start.'),
    knownAt,
    tz: zoneOfDays
  }),
  resolve: async ({ game, leaderboardId, limit, offset, knownAt }, context) => {
    if (knownAt !== undefined) requirePast(KNOWN_AT, knownAt, context.nowMs)
    const titleId = await knownGame(game, context)
    const known = knownAt === undefined ? {} : { knownAtMs: knownAt }
    return { titleId, leaderboardId, limit: limit ?? null, offset, ...known }
  },
  reads: ({ titleId, leaderboardId, knownAtMs }) =>
    knownAtMs === undefined
      ? [
          { projection: 'leaderboard-entry', key: boardKey({ titleId, leaderboardId }) },
          { projection: 'leaderboard', key: titleId },
          { projection: 'title', key: titleId }
        ]
      : readsOfKnownBoard({ titleId, leaderboardId }),
  isTaggedByContent: ({ knownAtMs }) => knownAtMs !== undefined,
  answer: async ({ titleId, leaderboardId, limit, offset, knownAtMs }, context) => {
    const board = { titleId, leaderboardId }
    const found =
      knownAtMs === undefined
        ? rowsOf(context.tables, boardRecords, board, { signal: context.signal })
        : knownRecords(board, knownAtMs, context)
    const [{ gameName, name, listed }, [row]] = await Promise.all([
      knownAtMs === undefined
        ? knownBoard(board, null, context, async () => (await found).length > 0)
        : knownBoardAt(board, { atMs: INSTANTS_END_MS - 1, knownAtMs }, context),
      found
    ])
    const total = row?.players.length ?? 0
    const end = Math.min(total, offset + (limit ?? RECORDS_MAX))
    const records = []
    for (let n = offset; row !== undefined && n < end; n += 1) {
      const [setMs = 0, fromMs = 0, toMs = null] = [row.setMs[n], row.fromMs[n], row.toMs[n]]
      // The best entry of a board's first instant reigns from then on.
      const fromIsFirstSight = fromMs === row.fromMs[0]
      records.push({
        playerName: row.players[n] ?? '',
        ...measureShown({ rating: row.ratings[n] ?? '', timeMs: row.timesMs[n] ?? null }),
        setAt: shownInstant(setMs),
        fromAt: shownInstant(fromMs),
        toAt: toMs === null ? null : shownInstant(toMs),
        fromIsFirstSight,
        isContested: !fromIsFirstSight && setMs === fromMs && row.toMs[n - 1] === fromMs
      })
    }
    const known = knownAtMs === undefined ? {} : { knownAt: shownInstant(knownAtMs) }
    const body = { titleId, gameName, leaderboardId: String(leaderboardId), name, listed, ...known, total, records }
    if (records.length === 0 || end >= total) return { body }
    const path = `/api/game/${titleId}/leaderboards/${leaderboardId}/records`
    return { body, headers: nextLink(path, { limit, offset: end, knownAt: known.knownAt ?? null }) }
  },
  table: listIn(LeaderboardRecords, 'records'),
  response: LeaderboardRecords,
  responseHeaders: { Link: 'The next page, with `rel="next"`, if there is one.' },
  refuses: ['game_unknown', 'leaderboard_unknown', 'leaderboard_not_yet_known']
}

async function knownRecords(board: BoardId, knownAt: number, { tables, signal, foldRecords }: AnswerContext) {
  if (foldRecords === undefined) throw new Error('This API has no fold of records; give it foldRecords.')
  const states = await rowsOf(tables, knownStates, { ...board, knownAt }, { signal })
  return states.map((row) => FoldedRecords.parse(foldRecords(row)))
}

type RecentRequest = {
  limit: number
  offset: number
  titleId: string | null
  player: string | null
  contested: boolean
}

const recentInput = z.object({
  limit: integer({ min: 1, max: 500 }).default(50).describe('Maximum number of records.'),
  offset: integer({ min: 0, max: RECORDS_MAX }).default(0).describe('Number of the newest ones to skip.'),
  game: gameParameter.optional().describe('Only of this game: a title id or a name.'),
  player: playerName().optional().describe('Only of players of this name, compared without case.'),
  contested: contestedParameter
})

/** `GET /api/records/recent`: new records on all boards. */
export const recentlySetRecords: Endpoint<z.infer<typeof recentInput>, RecentRequest> = {
  operationId: 'getRecentRecords',
  path: '/api/records/recent',
  tags: TAGS,
  summary: 'Records newly set',
  description:
    'Newest first, on any board: a better time or score than all before, or the first on a board. A record that a ' +
    'removal restored is not new and is not listed.',
  input: recentInput,
  resolve: async ({ limit, offset, game, player, contested }, context) => ({
    limit,
    offset,
    player: player === undefined ? null : nameKey(player),
    contested: contested === 'true',
    titleId: game === undefined ? null : await knownGame(game, context)
  }),
  reads: ({ titleId, player }) => [
    { projection: 'leaderboard-entry' },
    ...(player === null ? [] : [{ projection: 'player' }]),
    { projection: 'leaderboard', ...(titleId === null ? {} : { key: titleId }) },
    { projection: 'title', ...(titleId === null ? {} : { key: titleId }) }
  ],
  answer: async ({ limit, offset, titleId, player, contested }, context) => {
    const { tables, signal, catalog } = context
    const params = { titleId: titleId ?? '', playerKey: player ?? '', contested: Number(contested), limit, offset }
    const [rows, titles] = await Promise.all([rowsOf(tables, recentRecords, params, { signal }), catalog()])
    const boards = await context.boards()
    const body = rows.map((row) => ({
      titleId: row.titleId,
      gameName: titles.named(row.titleId).shownName,
      leaderboardId: row.leaderboardId,
      leaderboardName: boards.nameOf(row),
      playerName: row.player,
      ...measureShown(row),
      setAt: shownInstant(row.setMs),
      previousPlayerName: row.hasPrevious ? row.previousPlayer : null,
      previousRating: row.hasPrevious ? row.previousRating : null,
      previousTimeMs: row.hasPrevious ? row.previousTimeMs : null,
      isContested: row.hasPrevious,
      isCurrent: row.isCurrent
    }))
    const next = offset + limit
    if (rows.length < limit || next > RECORDS_MAX) return { body }
    return {
      body,
      headers: nextLink('/api/records/recent', {
        limit,
        offset: next,
        game: titleId,
        player,
        contested: contested ? 'true' : null
      })
    }
  },
  table: listOf(RecentRecords),
  response: RecentRecords,
  responseHeaders: { Link: 'The next page, with `rel="next"`, if there is one.' },
  refuses: ['game_unknown']
}
