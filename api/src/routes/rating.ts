import {
  averageOf,
  COMMENT_LENGTH_MAX,
  PRIOR_VOTES,
  RatingGiven,
  Refusal,
  Reputation,
  type ReputationTotals,
  shownInstant
} from '@gamenet/schemas'
import { z } from 'zod'
import type { Action, ActionContext, AnswerContext, Endpoint, EndpointResult } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { type ReputationRow, reputationOf } from '../queries/rating.js'
import { bodyField, bodyInteger, isProse, PROSE_PATTERN } from '../request/body.js'
import { integer, shown } from '../request/parameters.js'
import type { RatingResult } from '../writes/rating.js'
import { saveSighted, saveUser } from '../writes/user.js'
import { knownUser, type UserRequest, usernameParameter, userRequest } from './known-user.js'

const PATH = '/api/profile/:username/reputation'
/** A rating is retried when a user was created or erased concurrently. */
const TRIES_MAX = 3

type ReputationRequest = UserRequest & { readonly feedbackLimit: number }

/** `GET /api/profile/:username/reputation`: the ratings of a user; with a session, also the rating by its user. */
export const reputation: Endpoint<{ username: string; feedbackLimit: number }, ReputationRequest> = {
  operationId: 'getReputation',
  path: PATH,
  tags: ['Profiles'],
  summary: 'Ratings of a profile',
  description:
    'A session is optional and never refused: `viewer` is null without a valid one. An answer to a request with a ' +
    'session key is never cached.',
  input: z.object({
    username: usernameParameter,
    feedbackLimit: integer({ min: 1, max: 30 }).default(12).describe('Maximum number of ratings; the newest are given.')
  }),
  resolve: ({ username, feedbackLimit }) => ({ ...userRequest(username), feedbackLimit }),
  reads: ({ userKey }) => [
    { projection: 'rating', key: userKey },
    { projection: 'profile', key: userKey }
  ],
  answer: (request, context) => answerReputation(request, null, context),
  answerTo: (request, viewer, context) => answerReputation(request, viewer.userKey, context),
  table: listIn(Reputation, 'feedback'),
  response: Reputation,
  refuses: ['user_unknown']
}

/** `POST /api/profile/:username/reputation`: a user rates the profile of another. */
export const rateProfile: Action<{ username: string }, { stars: number; comment?: string | null | undefined }> = {
  operationId: 'rateProfile',
  path: PATH,
  method: 'POST',
  tags: ['Profiles'],
  summary: 'Rate a profile',
  description:
    'One rating per rater and profile: a second one replaces the first. A comment is stored as sent, including HTML: ' +
    'escape it before display.',
  parameters: z.object({ username: usernameParameter }),
  body: z.object({
    stars: bodyInteger({ min: 1, max: 5 }),
    comment: bodyField(
      `text of at most ${COMMENT_LENGTH_MAX} characters without control characters but line breaks, and without ` +
        `bidirectional controls`,
      { type: ['string', 'null'], maxLength: COMMENT_LENGTH_MAX, pattern: PROSE_PATTERN },
      readComment
    )
      .optional()
      .describe('Trimmed; a blank one counts as none.')
  }),
  bodyExample: { stars: 4, comment: 'Good sport.' },
  act: ({ username }, { stars, comment }, context) => rate(userRequest(username), { stars, comment }, context),
  response: RatingGiven,
  refuses: ['user_unknown', 'rating_of_self']
}

async function answerReputation(
  request: ReputationRequest,
  viewerKey: string | null,
  context: AnswerContext
): Promise<EndpointResult> {
  const { userKey, feedbackLimit: limit } = request
  const row = await reputationOf(context.writes, { userKey, limit, viewerKey })
  // A user with nothing but presence has no ratings yet.
  if (!row.isKnown) await knownUser(request, context)
  const feedback = row.feedback.map(({ rater, ...given }) => ({ raterUsername: rater, ...verdictOf(given) }))
  const viewer = row.viewer === null ? null : verdictOf(row.viewer)
  return { body: { ...totalsOf(row), feedback, viewer } satisfies Reputation }
}

async function rate(
  user: UserRequest,
  { stars, comment = null }: { stars: number; comment?: string | null | undefined },
  context: ActionContext
): Promise<RatingGiven> {
  const { session: rater, ratings, nowMs } = context
  const { userKey } = user
  if (userKey === rater.userKey) throw new Refusal('rating_of_self')
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const stored = await ratings.write({ userKey, rater, stars, comment, nowMs })
    if (stored.isRaterKnown && stored.isUserKnown) {
      context.changed(['rating', userKey])
      return { success: true, reputation: totalsOf(stored), viewer: verdictOf({ stars, comment, atMs: nowMs }) }
    }
    await makeKnown(user, stored, context)
  }
  throw new Refusal('engine_busy')
}

async function makeKnown(user: UserRequest, { isRaterKnown, isUserKnown }: RatingResult, context: ActionContext) {
  if (!isUserKnown) {
    const { userKey, username } = await knownUser(user, { ...context, signal: context.signal() })
    if (!(await saveSighted(context, { userKey, username }))) {
      throw new Refusal('user_unknown', [shown(user.username)])
    }
  }
  if (!isRaterKnown) await saveUser(context, context.session, 'return')
}

function totalsOf({ ratingCount, starsSum }: Pick<ReputationRow, 'ratingCount' | 'starsSum'>): ReputationTotals {
  return {
    average: averageOf(starsSum, ratingCount),
    ratingCount,
    effectiveVotes: ratingCount + PRIOR_VOTES,
    priorOnly: ratingCount === 0
  }
}

function verdictOf({ stars, comment, atMs }: { stars: number; comment: string | null; atMs: number }) {
  return { stars, comment, createdAt: shownInstant(atMs) }
}

function readComment(raw: unknown): string | null | undefined {
  if (raw === null) return null
  if (typeof raw !== 'string') return undefined
  const comment = raw.trim()
  if (comment === '') return null
  return isProse(comment, COMMENT_LENGTH_MAX) ? comment : undefined
}
