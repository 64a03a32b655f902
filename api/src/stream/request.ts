import { nameKey, Refusal, STREAM_KINDS } from '@gamenet/schemas'
import { z } from 'zod'
import type { ResolveContext } from '../answers/endpoint.js'
import { isTitleId } from '../queries/catalog.js'
import { cursor, integer, playerName, shown, someOf } from '../request/parameters.js'
import { boardParameter, gameParameter, knownGame, titleParameter } from '../routes/known-game.js'
import { contestedParameter } from '../routes/record-history.js'
import { CURSOR_CHARACTERS_MAX } from './cursor.js'
import { fits, type StreamFilter } from './kinds.js'

const WAIT_SECONDS_MAX = 60

/** The query of `GET /api/stream`. */
export const StreamInput = z.object({
  kinds: someOf(STREAM_KINDS)
    .optional()
    .describe('Only these kinds of events. Default: all recorded kinds that the filter fits.'),
  titleId: titleParameter.optional().describe('Only of this title: an id, also one that is not known yet, or a name.'),
  game: gameParameter.optional().describe('Only of this game: a title id or a name.'),
  leaderboardId: boardParameter.optional().describe('Only of this board; needs `titleId` or `game`.'),
  player: playerName()
    .optional()
    .describe(
      'Only changes and records of players of this name and achievements of the user of this name, without case.'
    ),
  contested: contestedParameter,
  after: cursor({ max: CURSOR_CHARACTERS_MAX })
    .optional()
    .describe('`start`, `now` or a cursor; default: `now`. The header `Last-Event-ID` takes precedence.'),
  wait: integer({ min: 0, max: WAIT_SECONDS_MAX })
    .optional()
    .describe('Answers with JSON as soon as there is an event, at the latest after so many seconds.')
})
export type StreamInput = z.infer<typeof StreamInput>

/** Returns the filter of a stream. Refuses kinds that a part of the filter does not fit. */
export async function filterOf(input: StreamInput, context: Pick<ResolveContext, 'catalog'>): Promise<StreamFilter> {
  const { kinds, titleId, game, leaderboardId, player, contested, wait } = input
  if (wait !== undefined && kinds?.includes('live-counts')) {
    throw new Refusal('request_invalid', [
      'kinds=live-counts has no events to wait for; leave out wait, or ask /api/online-users for the state'
    ])
  }
  if (titleId !== undefined && game !== undefined) {
    throw new Refusal('request_invalid', ['titleId and game name the same thing; give one of them'])
  }
  if (leaderboardId !== undefined && titleId === undefined && game === undefined) {
    throw new Refusal('request_invalid', [
      'leaderboardId needs titleId or game, because ids of boards repeat across games; give both'
    ])
  }
  const named = game ?? titleId
  const isId = titleId !== undefined && isTitleId(titleId)
  const filter = {
    titleId: named === undefined ? null : isId ? titleId.toLowerCase() : await knownGame(named, context),
    leaderboardId: leaderboardId ?? null,
    playerKey: player === undefined ? null : nameKey(player),
    contested: contested === 'true' ? (true as const) : undefined
  }
  const misfit = kinds?.find((kind) => !fits(kind, filter))
  if (misfit !== undefined) {
    const { playerKey, ...parts } = filter
    const given = Object.entries({ ...parts, player: playerKey }).flatMap(([name, part]) =>
      (part ?? null) === null ? [] : name
    )
    const fitting = STREAM_KINDS.filter((kind) => fits(kind, filter)).join(', ')
    throw new Refusal('request_invalid', [
      `kinds=${misfit} cannot be filtered by ${given.join(' and ')}; leave it out or ask for ${fitting}`
    ])
  }
  return { kinds: kinds ?? null, ...filter }
}

/** Returns the cursor to begin at, `Last-Event-ID`, else `after`, and the name that refusals give it. */
export function afterOf({ after = 'now' }: StreamInput, lastEventId: string | string[] | undefined): [string, string?] {
  if (typeof lastEventId !== 'string' || lastEventId === '') return [after]
  if (lastEventId.length <= CURSOR_CHARACTERS_MAX) return [lastEventId, 'The header Last-Event-ID']
  throw new Refusal('request_invalid', [
    `Last-Event-ID must be a cursor of at most ${CURSOR_CHARACTERS_MAX} characters; got ${shown(lastEventId)}`
  ])
}
