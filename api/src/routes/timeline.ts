import { INSTANTS_END_MS, newUnlock, shownInstant, Timeline, timeText } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint, EndpointResult } from '../answers/endpoint.js'
import { listOfKinds } from '../answers/table.js'
import { unlocksOfUser } from '../queries/achievement-unlock.js'
import { rowsOf } from '../queries/query.js'
import { type ChangePlace, changeRows, recordsOfPlayer } from '../queries/timeline.js'
import { nextLink } from '../reply/next-link.js'
import { boundText, CURSOR_CHARACTERS_MAX, readBoundText } from '../request/cursor.js'
import { cursor, integer } from '../request/parameters.js'
import { readsNames } from './entry-match.js'
import { knownUser, readsUser, type UserRequest, usernameParameter, userRequest } from './known-user.js'
import { PROFILE_TAGS } from './profile.js'

const START = 'start'

/** Order of the kinds of events of one instant. */
const UNLOCK = 0
const RECORD = 1
const RANK = 2

/**
 * The place of an event in the timeline: later instants first, then by kind, title and the numbers that distinguish
 * events of a title.
 */
const Place = z.tuple([
  z.int().min(0),
  z.int().min(UNLOCK).max(RANK),
  z.string().max(8),
  z.int().min(0),
  z.int().min(0),
  z.int().min(0),
  z.int().min(0)
])
type Place = z.infer<typeof Place>
type Event = Timeline[number]
type Placed = { readonly place: Place; readonly event: Event }

type TimelineInput = { username: string; limit: number; after?: string | undefined }
type TimelineRequest = UserRequest & { readonly limit: number; readonly after: Place | null }

/** `GET /api/profile/:username/timeline`: unlocks, records and gained ranks of a user. */
export const timeline: Endpoint<TimelineInput, TimelineRequest> = {
  operationId: 'getTimeline',
  path: '/api/profile/:username/timeline',
  tags: PROFILE_TAGS,
  summary: 'Timeline of a user, newest first',
  description:
    'Achievements unlocked, records set, and ranks gained on leaderboards: by entering a board, or by a better rank ' +
    'on it. A change that set a record is listed only as the record. Follow `Link: <…>; rel="next"` to go back in ' +
    'time; new events shift nothing.',
  input: z.object({
    username: usernameParameter,
    limit: integer({ min: 1, max: 100 }).default(25).describe('Maximum number of events.'),
    after: cursor({ max: CURSOR_CHARACTERS_MAX }).optional().describe('`start`, or a cursor that a page gave.')
  }),
  resolve: ({ username, limit, after }) => {
    const user = userRequest(username)
    const place = after === undefined || after === START ? null : readBoundText(filterOf(user), after, Place)
    return { ...user, limit, after: place }
  },
  reads: ({ userKey }) => [
    ...readsUser(userKey),
    { projection: 'achievement-unlock', key: userKey },
    { projection: 'leaderboard-entry' },
    { projection: 'player-entry' },
    { projection: 'player' },
    ...readsNames('')
  ],
  answer: answerTimeline,
  table: listOfKinds(Timeline),
  response: Timeline,
  responseHeaders: { Link: 'The next page, with `rel="next"`, if there is one.' },
  refuses: ['user_unknown', 'cursor_invalid']
}

async function answerTimeline(request: TimelineRequest, context: AnswerContext): Promise<EndpointResult> {
  const { userKey, limit, after } = request
  const { tables, signal } = context
  const [{ records, ranks }, unlocks] = await Promise.all([
    knownUser(request, context).then(({ player }) => boardEvents(player.key, request, context)),
    rowsOf(tables, unlocksOfUser, { userKey }, { signal })
  ])
  const placed = [...unlocks.flatMap(placedUnlock), ...records, ...ranks]
    .filter(({ place }) => after === null || compare(after, place) < 0)
    .sort((a, b) => compare(a.place, b.place))
  const page = placed.slice(0, limit)
  const body = page.map(({ event }) => event)
  const last = page.at(-1)
  if (last === undefined || placed.length <= limit) return { body }
  const path = `/api/profile/${encodeURIComponent(request.username)}/timeline`
  return { body, headers: nextLink(path, { limit, after: boundText(filterOf(request), last.place) }) }
}

/** Returns the records of a player, and one more gained rank after the requested place than a page can need. */
async function boardEvents(playerKey: string, request: TimelineRequest, context: AnswerContext) {
  const { tables, signal } = context
  const { limit, after } = request
  const [records, boards, titles] = await Promise.all([
    rowsOf(tables, recordsOfPlayer, { playerKey }, { signal }),
    context.boards(),
    context.catalog()
  ])
  // An event that set a record mostly gained a rank, too.
  const set = new Set(records.map(nameOfEvent))
  const ranks = await ranksBehind({ playerKey, after, limit }, (row) => !set.has(nameOfEvent(row)), context)
  const rest = (row: (typeof records | typeof ranks)[number]) => ({
    at: shownInstant(row.atMs),
    titleId: row.titleId,
    gameName: titles.named(row.titleId).shownName,
    leaderboardId: row.leaderboardId,
    leaderboardName: boards.nameOf(row),
    playerName: row.playerName
  })
  return {
    records: records.map(
      (row): Placed => ({
        place: [row.atMs, RECORD, row.titleId, row.leaderboardId, row.number, 0, 0],
        event: { kind: 'record', ...rest(row), ...measure(row) }
      })
    ),
    ranks: ranks.map((row): Placed => {
      const { previousRank, newRank } = row
      return {
        place: [row.atMs, RANK, row.titleId, row.leaderboardId, row.epoch, row.partition, row.offset],
        event: { kind: 'rank', ...rest(row), previousRank, newRank, ...measure(row) }
      }
    })
  }
}

type RankRow = z.infer<(typeof changeRows)['row']> & { readonly newRank: number }

/** Returns the matching gained ranks after a place, newest first: more than `limit`, unless there are no more. */
async function ranksBehind(
  { playerKey, after, limit }: { playerKey: string; after: Place | null; limit: number },
  passes: (row: RankRow) => boolean,
  { tables, signal }: AnswerContext
): Promise<RankRow[]> {
  const ranks: RankRow[] = []
  let place = changePlace(after)
  // Mostly half of the changes gained a rank.
  for (let reach = 2 * (limit + 1); ranks.length <= limit; reach *= 2) {
    const rows = await rowsOf(tables, changeRows, { ...place, playerKey, limit: reach }, { signal })
    let newest: ChangePlace | undefined
    for (const row of rows) {
      if (newest !== undefined && isSameChange(row, newest)) continue
      newest = row
      const { newRank } = row
      if (row.gained && newRank !== null && passes({ ...row, newRank })) ranks.push({ ...row, newRank })
    }
    if (newest === undefined || rows.length < reach) break
    place = placeOf(newest)
  }
  return ranks
}

function isSameChange(a: ChangePlace, b: ChangePlace): boolean {
  return a.epoch === b.epoch && a.partition === b.partition && a.offset === b.offset
}

function placeOf({ atMs, titleId, leaderboardId, epoch, partition, offset }: ChangePlace): ChangePlace {
  return { atMs, titleId, leaderboardId, epoch, partition, offset }
}

/** Returns the first change after a place; changes come last at their instant. */
function changePlace(after: Place | null): ChangePlace {
  const first = { titleId: '', leaderboardId: 0, epoch: 0, partition: 0, offset: 0 }
  if (after === null) return { atMs: INSTANTS_END_MS - 1, ...first }
  const [atMs, kind, titleId, leaderboardId, epoch, partition, offset] = after
  return kind === RANK ? { atMs, titleId, leaderboardId, epoch, partition, offset } : { atMs, ...first }
}

function placedUnlock(unlock: z.infer<(typeof unlocksOfUser)['row']>): Placed[] {
  const shown = newUnlock(unlock)
  if (shown === undefined) return []
  const { unlockedAt: at, ...rest } = shown
  const place: Place = [unlock.unlockedMs, UNLOCK, '', unlock.achievementId, 0, 0, 0]
  return [{ place, event: { kind: 'unlock', at, ...rest } }]
}

function compare([atMs, ...a]: Place, [otherMs, ...b]: Place): number {
  if (atMs !== otherMs) return otherMs - atMs
  for (const [n, mine] of a.entries()) {
    const other = b[n] ?? mine
    if (mine !== other) return mine < other ? -1 : 1
  }
  return 0
}

type BoardEvent = {
  readonly atMs: number
  readonly titleId: string
  readonly leaderboardId: number
  readonly playerName: string
}

function nameOfEvent({ atMs, titleId, leaderboardId, playerName }: BoardEvent): string {
  return JSON.stringify([atMs, titleId, leaderboardId, playerName])
}

function measure({ rating, timeMs }: { readonly rating: string; readonly timeMs: number | null }) {
  const timeFormatted = timeMs === null ? '' : timeText(timeMs)
  return { rating, timeMs: timeMs ?? 0, timeFormatted, isTime: timeMs !== null }
}

/** A cursor is valid for one user. */
const filterOf = ({ userKey }: UserRequest): object => ({ timelineOf: userKey })
