import { setMaxListeners } from 'node:events'
import { access, writeFile } from 'node:fs/promises'
import { Agent, request } from 'undici'
import { z } from 'zod'
import type { DemoPerson } from './auth/people.js'
import type { DemoAuth } from './auth/server.js'
import type { DemoChat } from './chat/server.js'
import { chance, chanceBelow } from './network/chance.js'

export type ActivityOptions = {
  readonly seed: number
  /** The public address of the service. */
  readonly apiUrl: string
  readonly auth: Pick<DemoAuth, 'url' | 'people'>
  readonly chat: Pick<DemoChat, 'hosts' | 'accountOf'> | undefined
  /** Created when all work is done; if it exists, the work is skipped. */
  readonly doneFile: string
  readonly signal: AbortSignal
}

const PEOPLE = 60
/** Requests to one service that run at once: more time out while a slow computer starts. */
const few = new Agent({ connections: 4 })
const RATINGS_EACH = 6
/** `viewer`: the rating by the requesting person; null without one. */
const Reputation = z.object({ viewer: z.object({}).nullable() })
/** Streams of chance that no other part of the demo uses. */
const RATED = 120
const STARS = 121
const COMMENT = 122

const BIOS = [
  'Evenings, mostly.',
  'Here for the races.',
  'Chasing one more record.',
  'Looking for a team on weekends.',
  'Playing since the first day.',
  ''
]
const COMMENTS = [
  'Good sport.',
  'Always up for one more round.',
  'Fast, and fair.',
  'Left in the middle of a match.',
  'Showed me the shortcut on the third track.',
  'Plays to win.'
]

/**
 * At the first start, signs in some users of the demo network, fills in their profiles and lets them rate one another,
 * over HTTP. Existing profiles and ratings stay: a visitor may have signed in as one of the users, and after a crash
 * the work is repeated.
 */
export async function actAsPeople(options: ActivityOptions): Promise<void> {
  const { auth, doneFile } = options
  const isDone = await access(doneFile).then(
    () => true,
    () => false
  )
  if (isDone) return
  const people = auth.people.slice(0, PEOPLE)
  // Each request listens; all users act at once.
  setMaxListeners(0, options.signal)
  const sessions = await Promise.all(people.map((person) => begin(options, person)))
  await Promise.all(sessions.map((sessionKey, rater) => rateOthers(options, people, sessionKey, rater)))
  for (const sessionKey of sessions) await ask(options, 'POST', `${auth.url}/api/auth/logout`, { body: { sessionKey } })
  await writeFile(doneFile, '')
}

/** Signs a person in and edits their profile, which creates it. Returns the session key. */
async function begin(options: ActivityOptions, person: DemoPerson): Promise<string> {
  const { apiUrl, auth, chat } = options
  const { username, gamertag, email, password, user } = person
  const login = await ask(options, 'POST', `${auth.url}/api/auth/login`, { body: { email, password } })
  const { sessionKey } = z.object({ sessionKey: z.string() }).parse(login)
  const account = chat?.accountOf(username)
  // Without its avatar: the picture's address contains the chat platform's port, which changes at each start.
  const linked = account === undefined ? {} : { chat_profile_url: `https://${chat?.hosts[0]}/users/${account.id}` }
  const wanted = {
    bio: BIOS[user % BIOS.length],
    avatar_hue: (user * 47) % 360,
    ...(gamertag === undefined ? {} : { linked_gamertag: gamertag }),
    ...linked
  }
  const url = `${apiUrl}/api/profile/${encodeURIComponent(username)}`
  // An empty edit answers with the profile, including its avatar's hue.
  const written = z.record(z.string(), z.unknown()).parse(await ask(options, 'PATCH', url, { body: {}, sessionKey }))
  const body = Object.fromEntries(Object.entries(wanted).filter(([field]) => isUnset(written[field])))
  await ask(options, 'PATCH', url, { body, sessionKey })
  return sessionKey
}

function isUnset(value: unknown): boolean {
  return value === '' || value === null
}

async function rateOthers(
  options: ActivityOptions,
  people: readonly DemoPerson[],
  sessionKey: string,
  rater: number
): Promise<void> {
  const { seed, apiUrl } = options
  for (let n = 0; n < RATINGS_EACH; n += 1) {
    const rated = people[(rater + 1 + chanceBelow(people.length - 1, seed, RATED, rater, n)) % people.length]
    if (rated === undefined) continue
    const comment = COMMENTS[chanceBelow(2 * COMMENTS.length, seed, COMMENT, rater, n)]
    const body = {
      stars: 5 - Math.floor(4 * chance(seed, STARS, rater, n) ** 2),
      ...(comment === undefined ? {} : { comment })
    }
    const url = `${apiUrl}/api/profile/${encodeURIComponent(rated.username)}/reputation`
    const { viewer } = Reputation.parse(await ask(options, 'GET', `${url}?feedbackLimit=1`, { sessionKey }))
    if (viewer === null) await ask(options, 'POST', url, { body, sessionKey })
  }
}

async function ask(
  { signal }: ActivityOptions,
  method: 'GET' | 'POST' | 'PATCH',
  url: string,
  { body, sessionKey }: { readonly body?: object; readonly sessionKey?: string }
): Promise<unknown> {
  const answer = await request(url, {
    dispatcher: few,
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(sessionKey === undefined ? {} : { 'x-session-key': sessionKey })
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal
  })
  const text = await answer.body.text()
  if (answer.statusCode !== 200)
    throw new Error(`${method} ${url} answered ${answer.statusCode}: ${text.slice(0, 200)}`)
  return JSON.parse(text)
}
