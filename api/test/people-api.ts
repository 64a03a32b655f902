import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migratePostgres, openPglite, openPostgres, type Postgres } from '@gamenet/engines'
import { postgresPrograms, sharedPostgres } from '@gamenet/engines/testing'
import { nameKey } from '@gamenet/schemas'
import tap, { type Test, test } from 'tap'
import type { ApiNeeds } from '../src/app.js'
import { actions, endpoints } from '../src/routes/endpoints.js'
import { TestAuth, TestChat } from './support/servers.js'
import { testApp } from './support/test-app.js'

/*
 * The API with real PostgreSQL, and real servers in place of the auth service and the chat platform. Only the tables of
 * presence are needed.
 */

type Answer = {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Record<string, unknown>
}
type RequestOptions = {
  readonly method?: 'GET' | 'PATCH' | 'PUT' | 'POST' | 'HEAD'
  readonly body?: unknown
  readonly key?: string
  readonly headers?: Record<string, string>
}
export type PeopleApi = Awaited<ReturnType<typeof openPeopleApi>>

/** The API on a separate write side. */
export async function openPeopleApi(t: Test, postgres: Postgres, { people, ...given }: Partial<ApiNeeds> = {}) {
  const auth = await TestAuth.open(t)
  const chat = await TestChat.open(t)
  const clock = { nowMs: Date.UTC(2026, 2, 14, 20, 0, 30, 250) }
  const api = await testApp(t, {
    endpoints,
    actions,
    writes: postgres,
    people: {
      authUrl: auth.url,
      chat: {
        apiUrl: chat.url,
        token: chat.token,
        hosts: ['chat.example.org', 'chat.example.com'],
        avatarUrl: 'https://images.example.org/{id}/{avatar}.png'
      },
      ...people
    },
    now: () => clock.nowMs,
    ...given
  })
  const seen = new Map<string, string>()
  api.tables.answer = async ({ userKey }) => {
    const value = seen.get(String(userKey))
    return value === undefined ? [] : [{ field: 'username', value, valueKey: '', atMs: 0 }]
  }
  const ask = async (
    path: string,
    { method = 'GET', body, key, headers = {} }: RequestOptions = {}
  ): Promise<Answer> => {
    const raw = typeof body === 'string' || body instanceof Buffer
    const answer = await api.app.inject({
      method,
      url: path,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'x-session-key': key }),
        ...headers
      },
      ...(body === undefined ? {} : { payload: raw ? body : JSON.stringify(body) })
    })
    const isEmpty = answer.body === ''
    return { status: answer.statusCode, body: isEmpty ? {} : JSON.parse(answer.body), headers: answer.headers }
  }
  return {
    ...api,
    auth,
    chat,
    clock,
    postgres,
    ask,
    /** Makes a user known by presence. */
    see: (username: string) => void seen.set(nameKey(username), username),
    /** Gives a user a session; its key is `key of <username>`, without blanks. */
    signIn: (username: string, gamertag?: string): string => {
      const key = `key-of-${Buffer.from(username).toString('hex')}`
      auth.sessions.set(key, gamertag === undefined ? { username } : { username, gamertag })
      return key
    },
    edit: (username: string, key: string, body: unknown) =>
      ask(`/api/profile/${encodeURIComponent(username)}`, { method: 'PATCH', key, body }),
    rate: (username: string, key: string, body: unknown) =>
      ask(`/api/profile/${encodeURIComponent(username)}/reputation`, { method: 'POST', key, body }),
    reputation: (username: string, options: RequestOptions = {}, query = '') =>
      ask(`/api/profile/${encodeURIComponent(username)}/reputation${query}`, options),
    outbox: () =>
      postgres.query<{ topic: string; people: string[]; event: Record<string, unknown> }>(
        'SELECT o.topic, o.people, o.event FROM outbox AS o ORDER BY o.id'
      )
  }
}

const PROGRAMS = postgresPrograms()
const TABLES = 'profile, rating, outbox, person, erasure, achievement_evaluation'

type Engine = { readonly name: string; readonly skip: string | false; open(): Promise<Postgres> }

const embedded: Engine = {
  name: 'PGlite',
  skip: false,
  open: async () => {
    const dir = await mkdtemp(join(tmpdir(), 'writes-'))
    const postgres = await openPglite({ dir })
    tap.teardown(async () => {
      await postgres.close()
      await rm(dir, { recursive: true, force: true })
    })
    return postgres
  }
}

const server: Engine = {
  name: 'PostgreSQL',
  skip:
    PROGRAMS === undefined && process.env.CI !== 'true' ? 'PostgreSQL is not installed (Debian: postgresql)' : false,
  open: async () => {
    if (PROGRAMS === undefined) throw new Error("CI tests on a real PostgreSQL; install Debian's package postgresql")
    const { url } = await sharedPostgres(tap)
    const postgres = openPostgres({ url })
    tap.teardown(() => postgres.close())
    return postgres
  }
}

/** Costs less than the embedded one, whose start alone takes 1.3 s of processor time. */
const usual = server.skip === false ? server : embedded

const opened = new Map<string, Promise<Postgres>>()

/** Runs a test on an embedded PostgreSQL and, where it is installed, on a server. */
export function onEachPostgres(title: string, run: (t: Test, postgres: Postgres) => Promise<void>): void {
  for (const engine of [embedded, server]) runOn(engine, title, run)
}

/** Runs a test that is independent of the engine on the server or, if it is missing, embedded. */
export function onPostgres(title: string, run: (t: Test, postgres: Postgres) => Promise<void>): void {
  runOn(usual, title, run)
}

function runOn(engine: Engine, title: string, run: (t: Test, postgres: Postgres) => Promise<void>): void {
  test(`${title} (${engine.name})`, { skip: engine.skip }, async (t) => {
    await run(t, await openEmpty(engine))
  })
}

/** A write side with empty tables, for tests that are independent of its engine. */
export function openWriteSide(): Promise<Postgres> {
  return openEmpty(usual)
}

/** The tests of a file share one of each engine. */
async function openEmpty({ name, open }: Engine): Promise<Postgres> {
  const opening = opened.get(name) ?? openMigrated(open)
  opened.set(name, opening)
  const postgres = await opening
  await postgres.script(`TRUNCATE ${TABLES}`)
  return postgres
}

async function openMigrated(open: Engine['open']): Promise<Postgres> {
  const postgres = await open()
  await migratePostgres(postgres)
  return postgres
}
