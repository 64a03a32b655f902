import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController
} from 'fastify'
import { z } from 'zod'
import type { DemoNetwork } from '../network/server.js'
import { addFaults, type DemoFaultOrder } from './faults.js'
import { type DemoPerson, demoPeople, friendsAt, gamesAt, stateAt } from './people.js'
import { isSameSecret } from './secret.js'
import { DemoSessions } from './sessions.js'

export type DemoAuthOptions = {
  /** The network whose users have accounts here. */
  readonly network: Pick<DemoNetwork, 'url' | 'world' | 'instantShown'>
  /** Default `127.0.0.1`. The passwords follow from the seed, so do not expose it. */
  readonly host?: string
  /** Default 0: a free port. */
  readonly port?: number
  /** Milliseconds since 1970; default the machine's clock. */
  readonly now?: () => number
  /** Milliseconds from login to the end of a session; default 12 hours. */
  readonly sessionMs?: number
  /** Delay of a slow answer; default 10 s. */
  readonly slowMs?: number
  readonly logger?: FastifyBaseLogger
  /** Called after every answer below `/api` with path and status, without contents. */
  readonly onAnswered?: (answered: { readonly path: string; readonly status: number }) => void
}

export type DemoAuth = {
  /** `{auth_url}`: `http://host:port`, no slash at the end. */
  readonly url: string
  /** All accounts. */
  readonly people: readonly DemoPerson[]
  /** Orders a fault, as `POST /_faults` does. */
  orderFault(order: z.input<typeof DemoFaultOrder>): void
  /** Ends all sessions, as if they had expired. */
  expireSessions(): void
  close(): Promise<void>
}

const SESSION_MS = 12 * 3_600_000
const SLOW_MS = 10_000
const BODY_BYTES_MAX = 64 * 1024
const NO_KEY = 'The session is invalid or has ended; log in again.'

const Login = z.object({ email: z.string(), password: z.string() })
const Key = z.object({ sessionKey: z.string() })

/**
 * Starts the demo auth service: accounts for all users of a demo network, sessions that expire, friends and games that
 * follow the network, faults on request. No log contains passwords or session keys, because requests are not logged.
 */
export async function startDemoAuth(options: DemoAuthOptions): Promise<DemoAuth> {
  const { host = '127.0.0.1', port = 0, now = Date.now, sessionMs = SESSION_MS, slowMs = SLOW_MS } = options
  const people = demoPeople(options.network.world.seed)
  const sessions = new DemoSessions<DemoPerson>({ lifeMs: sessionMs, now })
  const app = fastify({
    bodyLimit: BODY_BYTES_MAX,
    forceCloseConnections: true,
    logController: new LogController({ disableRequestLogging: true }),
    ...(options.logger === undefined ? {} : { loggerInstance: options.logger })
  })
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'There is nothing at this address.' }))
  app.setErrorHandler<{ statusCode?: number; message: string }>((error, _request, reply) => {
    const { statusCode: status = 500, message } = error
    if (status >= 500) app.log.error({ err: error }, 'the demo auth service failed')
    return reply.code(status).send({ error: status < 500 ? message : 'The auth service failed.' })
  })
  allowPages(app)
  const { onAnswered } = options
  if (onAnswered !== undefined) {
    app.addHook('onResponse', async (request, reply) => {
      const path = request.url.split('?', 1)[0] ?? ''
      if (path.startsWith('/api/') && request.method !== 'OPTIONS') onAnswered({ path, status: reply.statusCode })
    })
  }
  const orderFault = addFaults(app, slowMs)
  addSessionCalls(app, people, sessions)
  addLists(app, { network: options.network, sessions, now })
  const url = await app.listen({ host, port })
  return { url, people, orderFault, expireSessions: () => sessions.endAll(), close: () => app.close() }
}

/** Answers preflight requests: a page of another origin may send JSON and a session key, and read the answer. */
function allowPages(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    if (!request.url.startsWith('/api/')) return
    reply.header('Access-Control-Allow-Origin', '*').header('Cache-Control', 'no-store')
  })
  app.options('/api/*', async (_request, reply) =>
    reply
      .headers({
        'Access-Control-Allow-Methods': 'GET, POST, OPTIONS',
        'Access-Control-Allow-Headers': 'Content-Type, X-Session-Key',
        'Access-Control-Max-Age': '600'
      })
      .code(204)
      .send()
  )
}

function addSessionCalls(
  app: FastifyInstance,
  people: readonly DemoPerson[],
  sessions: DemoSessions<DemoPerson>
): void {
  const byEmail = new Map(people.map((person) => [person.email, person]))
  app.post('/api/auth/login', async (request, reply) => {
    const login = Login.safeParse(request.body)
    if (!login.success) return reply.code(400).send({ error: 'A login takes {"email", "password"}, both text.' })
    const person = byEmail.get(login.data.email.trim().toLowerCase())
    if (person === undefined || !isSameSecret(login.data.password, person.password)) {
      return reply.code(401).send({ error: 'The email address or the password is wrong.' })
    }
    const { username, email } = person
    return { success: true, username, email, sessionKey: sessions.begin(person) }
  })
  app.post('/api/auth/verify', async (request, reply) => {
    const login = Key.safeParse(request.body)
    if (!login.success) return reply.code(400).send({ error: 'A session is verified by {"sessionKey"}, a text.' })
    const person = sessions.personOf(login.data.sessionKey)
    return person === undefined ? reply.code(401).send({ valid: false }) : { valid: true, ...shown(person) }
  })
  app.post('/api/auth/logout', async (request, reply) => {
    const login = Key.safeParse(request.body)
    if (!login.success) return reply.code(400).send({ error: 'A session is ended by {"sessionKey"}, a text.' })
    sessions.end(login.data.sessionKey)
    return { success: true }
  })
  app.get('/api/auth/user', async (request, reply) => {
    const person = personOf(request, sessions)
    return person === undefined ? reply.code(401).send({ error: NO_KEY }) : shown(person)
  })
}

type ListNeeds = {
  readonly network: DemoAuthOptions['network']
  readonly sessions: DemoSessions<DemoPerson>
  readonly now: () => number
}

/** Friends, games and profile as of their last refresh; the first call refreshes them. */
function addLists(app: FastifyInstance, { network, sessions, now }: ListNeeds): void {
  const { world, url } = network
  const looks = {
    friends: (user: number, ms: number) => {
      const friends = friendsAt(world, user, ms)
      return { friends, count: friends.length }
    },
    games: (user: number, ms: number) => {
      const games = gamesAt(world, user, ms, url)
      return { games, count: games.length }
    },
    profile: (user: number, ms: number) => {
      const gamesPlayed = gamesAt(world, user, ms, url)
      return { ...stateAt(world, user, ms), gamesPlayed, count: gamesPlayed.length }
    }
  }
  for (const [noun, look] of Object.entries(looks)) {
    const seen = new Map<number, object>()
    const refresh = ({ user }: DemoPerson) => {
      const lastUpdated = now()
      const answer = { ...look(user, network.instantShown(lastUpdated)), lastUpdated }
      seen.set(user, answer)
      return answer
    }
    const answering =
      (answer: (person: DemoPerson) => object) => async (request: FastifyRequest, reply: FastifyReply) => {
        const person = personOf(request, sessions)
        return person === undefined ? reply.code(401).send({ error: NO_KEY }) : answer(person)
      }
    app.get(
      `/api/auth/${noun}`,
      answering((person) => seen.get(person.user) ?? refresh(person))
    )
    app.post(
      `/api/auth/refresh/${noun}`,
      answering((person) => ({ success: true, ...refresh(person) }))
    )
  }
}

function personOf(request: FastifyRequest, sessions: DemoSessions<DemoPerson>): DemoPerson | undefined {
  const { 'x-session-key': key } = request.headers
  return typeof key === 'string' ? sessions.personOf(key) : undefined
}

/** Returns the data of the person whose session the request has. */
function shown({ username, email, gamertag }: DemoPerson) {
  return { username, email, ...(gamertag === undefined ? {} : { gamertag }) }
}
