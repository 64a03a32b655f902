import { chance, chanceBelow, stream } from './chance.js'
import { fullness } from './rhythm.js'
import type { DemoTitle } from './titles.js'

/** Number of names on boards and of hosts. */
export const PLAYER_COUNT = 20_000

/** Number of players who are also users of the site: the rows of the players page. */
export const USER_COUNT = 400

const FIRST = [
  'Amber',
  'Arctic',
  'Binary',
  'Brave',
  'Bronze',
  'Calm',
  'Copper',
  'Cosmic',
  'Crimson',
  'Dizzy',
  'Dusty',
  'Early',
  'Electric',
  'Faded',
  'Fierce',
  'Frozen',
  'Gentle',
  'Golden',
  'Grim',
  'Hidden',
  'Hollow',
  'Iron',
  'Jolly',
  'Late',
  'Lucky',
  'Lunar',
  'Mellow',
  'Misty',
  'Neon',
  'Night',
  'Pixel',
  'Quiet',
  'Rapid',
  'Rusty',
  'Silent',
  'Solar',
  'Stray',
  'Turbo',
  'Velvet',
  'Wild'
]
const SECOND = [
  'Badger',
  'Bear',
  'Bishop',
  'Comet',
  'Crane',
  'Crow',
  'Dagger',
  'Drake',
  'Echo',
  'Ember',
  'Falcon',
  'Fox',
  'Ghost',
  'Hawk',
  'Heron',
  'Jackal',
  'Jester',
  'Knight',
  'Lynx',
  'Mantis',
  'Marlin',
  'Moth',
  'Nomad',
  'Otter',
  'Owl',
  'Panda',
  'Pilot',
  'Raven',
  'Rider',
  'Rogue',
  'Salmon',
  'Sparrow',
  'Tiger',
  'Tundra',
  'Viper',
  'Walrus',
  'Wasp',
  'Wolf',
  'Wren',
  'Yeti'
]

/** Coprime with 1,600, so that each pair occurs before any occurs twice. */
const NAME_STRIDE = 611

/** The gamertag of a player, 0 to {@link PLAYER_COUNT} - 1: letters, digits and spaces; unique. */
export function gamertagOf(seed: number, player: number): string {
  const start = chanceBelow(FIRST.length * SECOND.length, seed, stream.playerName)
  const pair = (start + player * NAME_STRIDE) % (FIRST.length * SECOND.length)
  const round = Math.floor(player / (FIRST.length * SECOND.length))
  const first = FIRST[Math.floor(pair / SECOND.length)] ?? ''
  const second = SECOND[pair % SECOND.length] ?? ''
  const spaced = pair % 3 === 0 ? `${first} ${second}` : `${first}${second}`
  return round === 0 ? spaced : `${spaced} ${round + 1}`
}

/** Unusual names: characters that pages must escape, other scripts, combining characters. */
const ODD = [
  '<b>Bold</b>',
  `"O'Neil" & Sons`,
  'שלום עולם',
  'سريع',
  'Zoe\u0301 Nu\u0303ez',
  '名無し',
  '🏁 Ace',
  '-',
  '0',
  'null',
  `${'long '.repeat(30)}name`
]
/** Every n-th player has an unusual name on boards and as a host. */
const ODD_EVERY = 83

/** The name of a player where players choose it themselves: mostly the gamertag; unique too. */
export function shownNameOf(seed: number, player: number): string {
  if (player % ODD_EVERY !== 0) return gamertagOf(seed, player)
  const place = player / ODD_EVERY
  const round = Math.floor(place / ODD.length)
  return `${ODD[place % ODD.length] ?? ''}${round === 0 ? '' : ` ${round + 1}`}`
}

/** The username of a player, spelt differently from the gamertag. */
export function usernameOf(seed: number, user: number): string {
  return gamertagOf(seed, user).replaceAll(' ', '_').toLowerCase()
}

/** One user on the players page at one instant. */
export type Sighting = {
  readonly gamertag: string
  readonly username: string
  /** The played title, and since when; undefined while offline. */
  readonly playing: { readonly title: DemoTitle; readonly sinceMs: number } | undefined
  /** When the user was last online; the instant itself while online. */
  readonly lastSeenMs: number
}

const MINUTE_MS = 60_000
const BLOCK_MS = 6 * 60 * MINUTE_MS
/** Number of blocks that are searched for the last evening of play: 30 days. */
const BLOCKS_MAX = 120

/** Returns the first `users` users at an instant. `titles` is ordered by popularity: users play the first ones most. */
export function sightingsAt(seed: number, titles: readonly DemoTitle[], users: number, ms: number): Sighting[] {
  return Array.from({ length: users }, (_, user) => sighting(seed, titles, user, ms))
}

/**
 * Each user's time is divided into blocks of six hours, with an offset per user. A block has at most one evening of play, more
 * probably when the load of the network is high. An evening has one title until its middle, then another one.
 */
function sighting(seed: number, titles: readonly DemoTitle[], user: number, ms: number): Sighting {
  const names = { gamertag: gamertagOf(seed, user), username: usernameOf(seed, user) }
  const offsetMs = offsetOf(seed, user)
  const newest = Math.floor((ms + offsetMs) / BLOCK_MS)
  for (let block = newest; block > newest - BLOCKS_MAX; block -= 1) {
    const evening = eveningOf(seed, user, block, block * BLOCK_MS - offsetMs)
    if (evening === undefined || evening.startMs > ms) continue
    if (ms >= evening.endMs) return { ...names, playing: undefined, lastSeenMs: evening.endMs }
    const isSecond = ms >= evening.middleMs
    const title = titlePlayed(seed, titles, user, block, isSecond ? 1 : 0)
    return { ...names, playing: { title, sinceMs: isSecond ? evening.middleMs : evening.startMs }, lastSeenMs: ms }
  }
  return { ...names, playing: undefined, lastSeenMs: (newest - BLOCKS_MAX) * BLOCK_MS }
}

/** A stretch of time in which a user played one title; half-open. */
export type Stretch = {
  readonly username: string
  readonly gamertag: string
  readonly title: DemoTitle
  readonly fromMs: number
  readonly toMs: number
}

/**
 * Returns what the same users played between two instants, user by user, oldest first. Stretches may extend beyond both
 * ends.
 */
export function stretchesBetween(
  seed: number,
  titles: readonly DemoTitle[],
  users: number,
  fromMs: number,
  toMs: number
): readonly Stretch[] {
  const stretches: Stretch[] = []
  for (let user = 0; user < users; user += 1) {
    const names = { gamertag: gamertagOf(seed, user), username: usernameOf(seed, user) }
    const offsetMs = offsetOf(seed, user)
    const newest = Math.floor((toMs + offsetMs) / BLOCK_MS)
    for (let block = Math.floor((fromMs + offsetMs) / BLOCK_MS); block <= newest; block += 1) {
      const evening = eveningOf(seed, user, block, block * BLOCK_MS - offsetMs)
      if (evening === undefined) continue
      const { startMs, middleMs, endMs } = evening
      stretches.push(
        { ...names, title: titlePlayed(seed, titles, user, block, 0), fromMs: startMs, toMs: middleMs },
        { ...names, title: titlePlayed(seed, titles, user, block, 1), fromMs: middleMs, toMs: endMs }
      )
    }
  }
  return stretches.filter((stretch) => stretch.toMs > fromMs && stretch.fromMs < toMs)
}

/** Returns the offset of a user's blocks. */
function offsetOf(seed: number, user: number): number {
  return Math.floor(chance(seed, stream.playerBlock, user) * BLOCK_MS)
}

type Evening = { readonly startMs: number; readonly middleMs: number; readonly endMs: number }

function eveningOf(seed: number, user: number, block: number, blockStartMs: number): Evening | undefined {
  const keenness = 0.1 + 0.5 * chance(seed, stream.playerPlays, user, -1)
  const isPlayed = chance(seed, stream.playerPlays, user, block) < keenness * fullness(blockStartMs + BLOCK_MS / 2)
  if (!isPlayed) return undefined
  const lengthMs = (10 + chanceBelow(140, seed, stream.playerLength, user, block)) * MINUTE_MS
  const startMs = blockStartMs + Math.floor(chance(seed, stream.playerStart, user, block) * (BLOCK_MS - lengthMs))
  return { startMs, middleMs: startMs + Math.floor(lengthMs * 0.6), endMs: startMs + lengthMs }
}

function titlePlayed(seed: number, titles: readonly DemoTitle[], user: number, block: number, leg: number): DemoTitle {
  const taste = chance(seed, stream.playerTitle, user, block * 2 + leg)
  const title = titles[Math.floor(taste ** 4 * titles.length)] ?? titles[0]
  if (title === undefined) throw new Error('The demo network has no titles; expected at least one.')
  return title
}
