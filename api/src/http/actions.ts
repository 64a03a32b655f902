import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Action, ActionContext } from '../answers/action.js'
import { SESSION_KEY_FIELD, shownKey } from '../session/session-key.js'
import type { Sessions } from '../session/sessions.js'
import type { WriteBudget } from '../writes/budget.js'
import type { HttpMetrics } from './metrics.js'
import { FOR_ONE_ALONE, JSON_TYPE } from './reply/headers.js'
import { readBody } from './request/body.js'
import { parseInput } from './request/parameters.js'

/** What doing something needs. */
export type ActionNeeds = Pick<ActionContext, 'writes' | 'ratings' | 'tables' | 'chat' | 'changed'> & {
  readonly sessions: Pick<Sessions, 'of'>
  readonly metrics: HttpMetrics
  readonly budget: WriteBudget
  now(): number
}

/** Reading on behalf of an action ends after this. */
const ACTION_MS_MAX = 10_000

/** Adds the routes of the actions. */
export function addActions(app: FastifyInstance, actions: readonly Action[], needs: ActionNeeds): void {
  for (const action of actions) {
    app.route({
      method: [...action.methods],
      url: action.path,
      config: { isStrictJson: true },
      handler: async (request, reply) => {
        const answer = await act(action, request, needs)
        return reply.headers({ 'Content-Type': JSON_TYPE, 'Cache-Control': FOR_ONE_ALONE }).send(JSON.stringify(answer))
      }
    })
  }
}

/** Refuses in the order: no readable body, no key, no session, not theirs, too many; only then what is asked for is judged. */
async function act(action: Action, request: FastifyRequest, needs: ActionNeeds): Promise<unknown> {
  const { [SESSION_KEY_FIELD]: _, ...fields } = readBody(request.body)
  const sessionKey = shownKey(request.headers, { [SESSION_KEY_FIELD]: _ })
  if (sessionKey === undefined) throw new Refusal('session_key_missing')
  const session = await needs.sessions.of(sessionKey)
  if (session === undefined) throw new Refusal('session_invalid')
  const given = request.params as Record<string, unknown>
  action.permit?.(given, session)
  needs.budget(session.userKey, needs.now())
  const parameters = parseInput(action.parameters, given)
  const body = parseInput(action.body, fields)
  const { metrics, now } = needs
  const startedAt = performance.now()
  const answer = await action.act(parameters, body, {
    session,
    writes: needs.writes,
    ratings: needs.ratings,
    tables: needs.tables,
    chat: needs.chat,
    changed: needs.changed,
    signal: () => AbortSignal.timeout(ACTION_MS_MAX),
    nowMs: now()
  })
  metrics.queried(action.operationId, (performance.now() - startedAt) / 1000)
  return answer
}
