import { type Board, boardsOf, type GivenBoard, isListedAt } from './boards.js'
import { chance, drift, stream } from './chance.js'
import { type DemoMatch, matchesAt } from './matches.js'
import { type Sighting, sightingsAt, USER_COUNT } from './players.js'
import { fullness, peopleOnline, peopleRegistered } from './rhythm.js'
import { type CatalogueTitle, readCatalogue } from './samples.js'
import { chooseTitles, type DemoTitle } from './titles.js'

/*
 * world      the demo network as a pure function of (seed, instant)
 * title      a game that the network supports
 * lobby      a match that is open; its players are part of the title's players
 * menus      people who are online and in no title
 */

/** One title at one instant. `lobbyPlayers` ≤ `online`; `lobbies` is 0 exactly when `lobbyPlayers` is. */
export type TitleState = {
  readonly title: DemoTitle
  readonly online: number
  readonly lobbies: number
  readonly lobbyPlayers: number
}

/** The network at one instant. `online` is the sum over the titles and the people in menus; `lobbies` is a sum. */
export type NetworkState = {
  readonly registered: number
  readonly online: number
  readonly lobbies: number
  /** In the order of {@link World.titles}. */
  readonly titles: readonly TitleState[]
}

/** The demo network. Everything is computed from the seed and the instant (ms since 1970); there is no state. */
export type World = {
  readonly seed: number
  /** Most played first. */
  readonly titles: readonly DemoTitle[]
  networkAt(ms: number): NetworkState
  matchesAt(title: DemoTitle, ms: number): DemoMatch[]
  /** Every board that a title ever lists, by id; none when the title has no leaderboards. */
  boardsOf(title: DemoTitle): readonly Board[]
  /** The boards that a title lists at an instant. */
  boardsAt(title: DemoTitle, ms: number): readonly Board[]
  /** Number of users of the site. */
  readonly users: number
  /** Whether its boards have a history of years. */
  readonly hasPast: boolean
  /** Every user of the site with the current state. */
  sightingsAt(ms: number): Sighting[]
}

const HOUR_MS = 3_600_000
const MENUS_SHARE = 0.06
/** Slowness of boards with a history: two years have about 320,000 changes, a third of them in the most played titles. */
const FAVOURITE_TITLES = 20
const FAVOURITE_SLOWNESS = 8
const USUAL_SLOWNESS = 32

/** The parameters of a world in addition to its seed. */
export type WorldOptions = {
  /** Titles to choose from; the shipped ones unless given. */
  readonly catalogue?: readonly CatalogueTitle[]
  /** Boards that titles have instead of their own, by title id. */
  readonly boards?: Readonly<Record<string, readonly GivenBoard[]>>
  /** Factor of the number of people online; default 1. */
  readonly crowd?: number
  /** Boards change over months instead of weeks, and have a history; default: false. */
  readonly hasPast?: boolean
  /** Number of users of the site, at most {@link USER_COUNT}; default: all. */
  readonly users?: number
}

/** Creates the demo network of a seed, an integer. */
export function createWorld(seed: number, options: WorldOptions = {}): World {
  const { catalogue = readCatalogue(), boards: given = {}, crowd = 1, users = USER_COUNT, hasPast = false } = options
  if (!Number.isInteger(seed)) throw new Error(`The seed of the demo network is ${seed}; expected a whole number.`)
  const titles = chooseTitles(catalogue, seed)
  const boards = titles.map((title) => {
    const slowness = hasPast ? (title.index < FAVOURITE_TITLES ? FAVOURITE_SLOWNESS : USUAL_SLOWNESS) : 1
    return boardsOf(seed, title, { given: given[title.titleId], slowness })
  })
  const networkAt = remembered((ms) => networkState(seed, titles, ms, crowd))
  return {
    seed,
    titles,
    networkAt,
    matchesAt: (title, ms) => {
      const state = networkAt(ms).titles[title.index]
      return matchesAt(seed, title, { lobbies: state?.lobbies ?? 0, players: state?.lobbyPlayers ?? 0 }, ms)
    },
    boardsOf: (title) => boards[title.index] ?? [],
    boardsAt: (title, ms) => (boards[title.index] ?? []).filter((board) => isListedAt(seed, board, ms)),
    users,
    hasPast,
    sightingsAt: (ms) => sightingsAt(seed, titles, users, ms)
  }
}

/** Caches the newest state: all pages of one instant are rendered from it, sometimes thousands of boards. */
function remembered(stateAt: (ms: number) => NetworkState): (ms: number) => NetworkState {
  let newest: { readonly ms: number; readonly state: NetworkState } | undefined
  return (ms) => {
    if (newest?.ms !== ms) newest = { ms, state: stateAt(ms) }
    return newest.state
  }
}

/** Distributes the people of the network among the titles by weight, so that the sum follows the network's cycles. */
function networkState(seed: number, titles: readonly DemoTitle[], ms: number, crowd: number): NetworkState {
  const people = crowd * peopleOnline(seed, ms)
  const inMenus = people * MENUS_SHARE * (1 + 0.2 * drift(seed, stream.menus, 0, ms, 40 * 60_000))
  const pulls = titles.map((title) => pullOf(seed, title, ms))
  const pullOfAll = pulls.reduce((sum, pull) => sum + pull, 0)
  const states = titles.map((title, index) => {
    const expected = (people * (1 - MENUS_SHARE) * (pulls[index] ?? 0)) / pullOfAll
    return titleState(seed, title, expected, ms)
  })
  let online = Math.floor(inMenus)
  let lobbies = 0
  for (const state of states) {
    online += state.online
    lobbies += state.lobbies
  }
  return { registered: peopleRegistered(ms), online, lobbies, titles: states }
}

/**
 * Returns the weight of a title at an instant: popularity that changes over weeks, random changes within an evening, and the
 * time of day of its players.
 */
function pullOf(seed: number, title: DemoTitle, ms: number): number {
  const fortune =
    1 +
    0.3 * drift(seed, stream.titleSlow, title.index, ms, 9 * 24 * HOUR_MS) +
    0.2 * drift(seed, stream.titleMiddle, title.index, ms, 5 * HOUR_MS) +
    0.05 * drift(seed, stream.titleFast, title.index, ms, 17 * 60_000)
  return title.weight * fortune * (fullness(ms, title.dayAheadHours) / fullness(ms))
}

/** Rounds an expected number of players by a slow random value, so that half a player is present half of the time. */
function titleState(seed: number, title: DemoTitle, expected: number, ms: number): TitleState {
  const online = Math.floor(expected + roundingOf(seed, title, ms))
  const [, hasMatchmaking] = title.features
  if (!hasMatchmaking || online < 2) return { title, online, lobbies: 0, lobbyPlayers: 0 }
  const share = 0.45 + 0.2 * drift(seed, stream.lobbyShare, title.index, ms, HOUR_MS)
  const lobbyPlayers = Math.floor(online * share)
  if (lobbyPlayers === 0) return { title, online, lobbies: 0, lobbyPlayers: 0 }
  const fill = 0.5 + 0.15 * drift(seed, stream.lobbyFill, title.index, ms, 2 * HOUR_MS)
  const playersEach = Math.max(1, title.matchSize * fill)
  return { title, online, lobbies: Math.ceil(lobbyPlayers / playersEach), lobbyPlayers }
}

/** Returns a random value in [0, 1) that changes every ten minutes, at another instant for each title. */
function roundingOf(seed: number, title: DemoTitle, ms: number): number {
  const stretch = Math.floor(ms / 600_000 + chance(seed, stream.phase, title.index, stream.titleRounding))
  return chance(seed, stream.titleRounding, title.index, stretch)
}
