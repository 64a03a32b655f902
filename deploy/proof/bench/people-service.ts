import { Pool } from 'undici'
import { z } from 'zod'
import { type DemoAuth, startDemoAuth } from '../../demo/auth/server.js'
import type { Environment } from '../../test/service/gamenet.js'
import { type QuietService, startQuietService, world } from './quiet-service.js'

export const USERS = 200
const NOON = Date.UTC(2026, 10, 21, 12)

/** A quiet service with signed-in users, each with a profile. */
export type PeopleService = QuietService & {
  /** One user rates another; throws unless the status is 200. */
  rate(rater: number, user: number, stars: number): Promise<void>
}

/** Starts the service with its users and a client with a number of connections. */
export async function startPeopleService(
  directory: string,
  connections: number,
  environment: Environment
): Promise<PeopleService> {
  const auth = await startDemoAuth({ network: { url: 'http://network.example', world, instantShown: () => NOON } })
  const service = await startQuietService(directory, {
    AUTH_URL: auth.url,
    ...environment
  })
  const pool = new Pool(service.apiUrl, { connections })
  const send = async (method: 'PATCH' | 'POST', path: string, sessionKey: string, body: object) => {
    const answer = await pool.request({
      method,
      path,
      headers: { 'x-session-key': sessionKey, 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
    const text = await answer.body.text()
    if (answer.statusCode !== 200) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`)
  }
  const usernames = auth.people.slice(0, USERS).map(({ username }) => username)
  const keys = await Promise.all(auth.people.slice(0, USERS).map((person) => sessionKeyOf(auth, person)))
  for (const [user, username] of usernames.entries()) {
    await send('PATCH', `/api/profile/${username}`, keys[user] ?? '', { bio: 'hello' })
  }
  return {
    ...service,
    rate: (rater, user, stars) =>
      send('POST', `/api/profile/${usernames[user]}/reputation`, keys[rater] ?? '', { stars, comment: 'well played' }),
    async remove() {
      await pool.destroy()
      await service.remove()
      await auth.close()
    }
  }
}

async function sessionKeyOf(auth: DemoAuth, { email, password }: DemoAuth['people'][number]): Promise<string> {
  const response = await fetch(`${auth.url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password })
  })
  return z.object({ sessionKey: z.string() }).parse(await response.json()).sessionKey
}
