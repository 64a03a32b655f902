import { createHash, randomBytes } from 'node:crypto'
import { type FastifyBaseLogger, fastify, LogController } from 'fastify'
import type { z } from 'zod'
import { addFaults, type DemoFaultOrder } from '../auth/faults.js'
import { isSameSecret } from '../auth/secret.js'
import { chance, chanceBelow } from '../network/chance.js'
import { gamertagOf, USER_COUNT, usernameOf } from '../network/players.js'

export type DemoChatOptions = {
  readonly seed: number
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** Default 0: a free port. */
  readonly port?: number
  /** The token that callers must send; default a random one. */
  readonly token?: string
  /** Delay of a slow answer; default 10 s. */
  readonly slowMs?: number
  readonly logger?: FastifyBaseLogger
  /** Called for every requested account. */
  readonly onRequest?: (id: string) => void
}

/** An account as the chat platform's API returns it. */
export type ChatAccount = {
  /** 17 to 20 digits. */
  readonly id: string
  readonly username: string
  readonly global_name: string | null
  /** The name of the picture; null without one. */
  readonly avatar: string | null
}

export type DemoChat = {
  /** `CHAT_API_URL`, no slash at the end. */
  readonly url: string
  /** `CHAT_API_TOKEN`. */
  readonly token: string
  /** `CHAT_HOSTS`: the host of the platform's pages; nothing listens there. */
  readonly hosts: readonly string[]
  /** `CHAT_AVATAR_URL`, with `{id}` and `{avatar}`. */
  readonly avatarUrl: string
  /** The account of a user of the demo network; two of three have one. */
  accountOf(username: string): ChatAccount | undefined
  /** Orders a fault, as `POST /_faults` does. */
  orderFault(order: z.input<typeof DemoFaultOrder>): void
  close(): Promise<void>
}

const HOSTS = ['chat.example.org']
const SLOW_MS = 10_000
const TOKEN_BYTES = 24
/** Streams of chance that no other part of the demo uses. */
const ACCOUNT_ID = 110
const ACCOUNT_FORM = 111
/** Every third user has no account. */
const WITHOUT_EACH = 3

/** Starts the demo chat platform: accounts for most users of a demo network, pictures, faults on request. */
export async function startDemoChat(options: DemoChatOptions): Promise<DemoChat> {
  const { seed, host = '127.0.0.1', port = 0, slowMs = SLOW_MS, onRequest } = options
  const token = options.token ?? randomBytes(TOKEN_BYTES).toString('base64url')
  const byUser = accountsOf(seed)
  const byId = new Map([...byUser.values()].map((account) => [account.id, account]))
  const app = fastify({
    forceCloseConnections: true,
    logController: new LogController({ disableRequestLogging: true }),
    ...(options.logger === undefined ? {} : { loggerInstance: options.logger })
  })
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ message: 'There is nothing at this address.' }))
  const orderFault = addFaults(app, slowMs)
  app.get<{ Params: { id: string } }>('/api/users/:id', async ({ headers, params }, reply) => {
    onRequest?.(params.id)
    if (!isSameSecret(headers.authorization ?? '', `Bot ${token}`))
      return reply.code(401).send({ message: 'Unauthorized' })
    return byId.get(params.id) ?? reply.code(404).send({ message: 'Unknown user' })
  })
  app.get<{ Params: { id: string; picture: string } }>('/avatars/:id/:picture', async ({ params }, reply) => {
    const avatar = byId.get(params.id)?.avatar ?? null
    if (avatar === null || params.picture !== `${avatar}.svg`) return reply.callNotFound()
    return reply.type('image/svg+xml').header('Cache-Control', 'max-age=86400').send(picture(avatar))
  })
  const origin = await app.listen({ host, port })
  return {
    url: `${origin}/api`,
    token,
    hosts: HOSTS,
    avatarUrl: `${origin}/avatars/{id}/{avatar}.svg`,
    accountOf: (username) => byUser.get(username.toLowerCase()),
    orderFault,
    close: () => app.close()
  }
}

/** Returns the accounts by username. Some have no chosen name, some no picture. */
function accountsOf(seed: number): Map<string, ChatAccount> {
  const accounts = new Map<string, ChatAccount>()
  for (let user = 0; user < USER_COUNT; user += 1) {
    if (user % WITHOUT_EACH === WITHOUT_EACH - 1) continue
    const username = usernameOf(seed, user)
    const form = chance(seed, ACCOUNT_FORM, user)
    accounts.set(username, {
      id: idOf(seed, user),
      username: username.replaceAll('_', '.'),
      global_name: form < 0.8 ? gamertagOf(seed, user) : null,
      avatar: form > 0.2 ? createHash('md5').update(`${seed} ${username}`).digest('hex') : null
    })
  }
  return accounts
}

/** 17 to 20 digits; the user's number at the end makes them unique. */
function idOf(seed: number, user: number): string {
  const digits = 17 + (user % 4)
  const random = Array.from({ length: digits - 5 }, (_, place) => chanceBelow(10, seed, ACCOUNT_ID, user, place))
  return `1${random.join('')}${String(user).padStart(4, '0')}`
}

function picture(avatar: string): string {
  const hue = Number.parseInt(avatar.slice(0, 4), 16) % 360
  return `<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><rect width="64" height="64" fill="hsl(${hue} 50% 45%)"/></svg>`
}
