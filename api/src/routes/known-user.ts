import { INSTANTS_END_MS, nameKey, Refusal } from '@gamenet/schemas'
import type { AnswerContext, Dependency } from '../answers/endpoint.js'
import { type PRESENCE_FIELDS, presenceFacts } from '../queries/play-time.js'
import { type ProfileRow, profileOf } from '../queries/profile.js'
import { rowsOf } from '../queries/query.js'
import { shown, username } from '../request/parameters.js'
import { endOfMinute } from '../request/window.js'

/** The path parameter `:username`. */
export const usernameParameter = username().describe('The name of a user, percent-encoded, compared without case.')

/** A user by key, and as requested, for refusals. */
export type UserRequest = { readonly userKey: string; readonly username: string }

/** Returns the user that a path names. */
export const userRequest = (name: string): UserRequest => ({ userKey: nameKey(name), username: name })

type Sighted = { readonly value: string; readonly valueKey: string; readonly atMs: number }

/** The fields of a user's presence, each from its newest sighting. */
export type PresenceFacts = Readonly<Partial<Record<(typeof PRESENCE_FIELDS)[number], Sighted>>>

/** A known user. */
export type KnownUser = {
  readonly userKey: string
  /** The stored spelling: that of the last verified session, else the newest that presence saw. */
  readonly username: string
  readonly profile: ProfileRow | undefined
  readonly presence: PresenceFacts
  readonly hasPresence: boolean
  readonly player: BoardName
}

/** The name of a user's entries on boards, and its source. */
export type BoardName = { readonly name: string; readonly key: string; readonly from: 'linked' | 'seen' | 'username' }

/** Returns the dependencies of {@link knownUser}. */
export function readsUser(userKey: string): Dependency[] {
  return [
    { projection: 'profile', key: userKey },
    { projection: 'presence-latest', key: userKey }
  ]
}

/** Returns a user with a profile or presence: of all time, or up to `nowMs`. Refuses all others. */
export async function knownUser(
  request: UserRequest & { readonly nowMs?: number },
  { tables, writes, signal }: Pick<AnswerContext, 'tables' | 'writes' | 'signal'>
): Promise<KnownUser> {
  const { userKey, nowMs } = request
  const nowEnd = nowMs === undefined ? INSTANTS_END_MS : endOfMinute(nowMs)
  const [profile, facts] = await Promise.all([
    profileOf(writes, userKey),
    rowsOf(tables, presenceFacts, { userKey, nowEnd }, { signal })
  ])
  const presence: PresenceFacts = Object.fromEntries(facts.map(({ field, ...sighted }) => [field, sighted]))
  const username = profile?.username ?? presence.username?.value
  if (username === undefined) throw new Refusal('user_unknown', [shown(request.username)])
  const player = boardName(username, profile, presence)
  return { userKey, username, profile, presence, hasPresence: facts.length > 0, player }
}

function boardName(username: string, profile: ProfileRow | undefined, { gamertag }: PresenceFacts): BoardName {
  const linked = profile?.linked_gamertag ?? ''
  if (linked !== '') return { name: linked, key: nameKey(linked), from: 'linked' }
  if (gamertag !== undefined) return { name: gamertag.value, key: gamertag.valueKey, from: 'seen' }
  return { name: username, key: nameKey(username), from: 'username' }
}
