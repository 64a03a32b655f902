import { join } from 'node:path'
import { openChdb, openPglite } from '@gamenet/engines'
import type { Test } from 'tap'
import { Pool } from 'undici'
import { z } from 'zod'
import type { DemoPerson } from '../../demo/auth/people.js'
import { type DemoAuth, startDemoAuth } from '../../demo/auth/server.js'
import { createWorld } from '../../demo/network/world.js'
import { type Environment, type Opened, openGamenet, type Running, startGamenet } from './gamenet.js'

/*
 * A service that scrapes nothing, and an auth service in this process: users sign in, edit and rate.
 */

const NOON = Date.UTC(2026, 10, 21, 12)
const world = createWorld(7)

/** A signed-in user. */
export type SignedIn = { readonly person: DemoPerson; readonly sessionKey: string }

export type Answered = { readonly status: number; readonly body: unknown }

export async function startAuth(t: Pick<Test, 'teardown'>): Promise<DemoAuth> {
  const auth = await startDemoAuth({ network: { url: 'http://network.example', world, instantShown: () => NOON } })
  t.teardown(() => auth.close())
  return auth
}

export async function signIn(auth: DemoAuth, person: DemoPerson): Promise<SignedIn> {
  const { email, password } = person
  const response = await fetch(`${auth.url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password })
  })
  return { person, sessionKey: z.object({ sessionKey: z.string() }).parse(await response.json()).sessionKey }
}

/** Starts `gamenet start` on a folder, with this auth service, in a separate process. */
export function startPeopleService(folder: string, auth: DemoAuth, environment: Environment = {}): Promise<Running> {
  return startGamenet(settingsOf(folder, auth, environment))
}

/** The same in this process, until the test ends. */
export function openPeopleService(
  t: Pick<Test, 'teardown'>,
  folder: string,
  auth: DemoAuth,
  environment: Environment = {}
): Promise<Opened> {
  return openGamenet(t, settingsOf(folder, auth, environment))
}

function settingsOf(folder: string, auth: DemoAuth, environment: Environment): Environment {
  return {
    DATA_DIR: folder,
    AUTH_URL: auth.url,
    UPSTREAM_URL: 'http://127.0.0.1:9',
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0',
    SCRAPE_PLAYERS_SECONDS: '0',
    ...environment
  }
}

/** Sends requests to a service, over this number of connections. */
export class Caller {
  readonly #pool: Pool

  constructor({ apiUrl }: Pick<Running, 'apiUrl'>, connections: number) {
    this.#pool = new Pool(apiUrl ?? '', { connections, headersTimeout: 60_000 })
  }

  /** Rejects when the connection breaks. */
  async ask(method: 'GET' | 'PATCH' | 'POST', path: string, who?: SignedIn, body?: object): Promise<Answered> {
    const answer = await this.#pool.request({
      method,
      path,
      headers: {
        ...(who === undefined ? {} : { 'x-session-key': who.sessionKey }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' })
      },
      body: body === undefined ? null : JSON.stringify(body)
    })
    return { status: answer.statusCode, body: await answer.body.json() }
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }
}

export type RatingRow = {
  readonly userKey: string
  readonly raterKey: string
  readonly stars: number
  readonly comment: string | null
  readonly revision: string
}

const ORDER = 'ORDER BY r.user_key, r.rater_key'

/** The ratings of a stopped service, as PostgreSQL and as ClickHouse have them, and the rows of the outbox. */
export async function storedRatings(
  folder: string
): Promise<{ writes: RatingRow[]; tables: RatingRow[]; outbox: number }> {
  const postgres = await openPglite({ dir: join(folder, 'writes') })
  const writes = await postgres.query<RatingRow>(
    `SELECT r.user_key AS "userKey", r.rater_key AS "raterKey", r.stars::int AS stars, r.comment, r.revision
     FROM rating AS r ORDER BY r.user_key COLLATE "C", r.rater_key COLLATE "C"`
  )
  const [outbox] = await postgres.query<{ rows: number }>('SELECT count(*)::int AS rows FROM outbox')
  await postgres.close()
  const clickhouse = await openChdb({ path: join(folder, 'tables'), grants: 'GRANT ALL ON *.*' })
  const tables = await clickhouse.control.rows(
    `SELECT r.user_key AS userKey, r.rater_key AS raterKey, r.stars AS stars, r.comment AS comment,
       toString(r.revision) AS revision
     FROM rating AS r FINAL ${ORDER}`
  )
  await clickhouse.close()
  return { writes, tables: tables as RatingRow[], outbox: outbox?.rows ?? -1 }
}
