import { createHmac } from 'node:crypto'
import { chance } from '../network/chance.js'
import { titleImageName } from '../network/pages.js'
import { gamertagOf, type Sighting, USER_COUNT, usernameOf } from '../network/players.js'
import type { World } from '../network/world.js'

/*
 * person     a user of the demo network who has an account; the same at every start with the same seed
 * sighting   what the demo network's players page says about a user
 */

/** One account of the demo auth service. */
export type DemoPerson = {
  /** 0 to {@link USER_COUNT} - 1: the demo network's number of the user. */
  readonly user: number
  readonly username: string
  readonly email: string
  /** Undefined for every tenth person. */
  readonly gamertag: string | undefined
  readonly password: string
}

/** A friend as the auth service returns it. */
type Friend = {
  readonly gamertag: string
  readonly status: string
  readonly isOnline: boolean
  readonly game?: string
  readonly duration?: string
  readonly lastSeen?: string
}

type PlayedGame = { readonly title: string; readonly lastPlayed: string; readonly iconUrl: string }

/** Streams of chance that no other part of the demo uses: those of the network end at 99. */
const FRIENDSHIP = 100
/** About 32 of the 400 users are friends of a person; two or three of them are online in the evening. */
const FRIENDSHIP_SHARE = 0.08
const PASSWORD_LETTERS = 12
const GAMES_MAX = 12
/** Maximum number of earlier instants that are searched for games: 2 ms each; an evening of play needs two or three. */
const LOOKS_MAX = 20
const WITHOUT_GAMERTAG_EACH = 10

/** Returns all accounts of a seed. */
export function demoPeople(seed: number): DemoPerson[] {
  return Array.from({ length: USER_COUNT }, (_, user) => {
    const username = usernameOf(seed, user)
    const hasGamertag = user % WITHOUT_GAMERTAG_EACH !== WITHOUT_GAMERTAG_EACH - 1
    return {
      user,
      username,
      email: `${username}@example.org`,
      gamertag: hasGamertag ? gamertagOf(seed, user) : undefined,
      password: createHmac('sha256', `demo ${seed}`).update(username).digest('base64url').slice(0, PASSWORD_LETTERS)
    }
  })
}

/** Returns the friends of a user at an instant of the world, those online first. Friendship is mutual. */
export function friendsAt(world: World, user: number, ms: number): Friend[] {
  const friends = world.sightingsAt(ms).filter((_, other) => areFriends(world.seed, user, other))
  const entries = friends.map(({ gamertag, playing, lastSeenMs }): Friend => {
    if (playing === undefined) {
      return { gamertag, status: 'Offline', isOnline: false, lastSeen: agoText(ms - lastSeenMs) }
    }
    const { title, sinceMs } = playing
    return { gamertag, status: 'Online', isOnline: true, game: title.name, duration: durationText(ms - sinceMs) }
  })
  return entries.sort((a, b) => Number(b.isOnline) - Number(a.isOnline))
}

/** Returns what a user plays at an instant of the world, if anything. */
export function stateAt(world: World, user: number, ms: number) {
  const playing = world.sightingsAt(ms)[user]?.playing
  if (playing === undefined) return { isOnline: false, status: 'Offline' }
  const timeOnline = durationText(ms - playing.sinceMs)
  return { isOnline: true, status: 'Online', game: playing.title.name, timeOnline }
}

/**
 * Returns the games that a user has played recently, newest first, each once. `networkUrl` is the address of their pictures.
 */
export function gamesAt(world: World, user: number, ms: number, networkUrl: string): PlayedGame[] {
  const games = new Map<string, PlayedGame>()
  let lookMs = ms
  for (let look = 0; look < LOOKS_MAX && games.size < GAMES_MAX; look += 1) {
    const seen: Sighting | undefined = world.sightingsAt(lookMs)[user]
    if (seen === undefined) break
    const { playing, lastSeenMs } = seen
    if (playing === undefined) {
      lookMs = lastSeenMs - 1
      continue
    }
    const { title, sinceMs } = playing
    if (!games.has(title.titleId)) {
      const iconUrl = `${networkUrl}/img/${titleImageName(title)}`
      games.set(title.titleId, { title: title.name, lastPlayed: agoText(ms - lookMs), iconUrl })
    }
    lookMs = sinceMs - 1
  }
  return [...games.values()]
}

function areFriends(seed: number, user: number, other: number): boolean {
  if (user === other) return false
  return chance(seed, FRIENDSHIP, Math.min(user, other), Math.max(user, other)) < FRIENDSHIP_SHARE
}

const MINUTE_MS = 60_000
const UNITS = [
  ['day', 1440],
  ['hour', 60],
  ['minute', 1]
] as const

/** `1h 5m`, `5m`. */
function durationText(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / MINUTE_MS))
  return minutes < 60 ? `${minutes}m` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`
}

/** `3 hours ago`, `just now`. */
function agoText(ms: number): string {
  const minutes = Math.floor(ms / MINUTE_MS)
  for (const [name, size] of UNITS) {
    const count = Math.floor(minutes / size)
    if (count > 0) return `${count} ${name}${count === 1 ? '' : 's'} ago`
  }
  return 'just now'
}
