/*
 * seed     chooses one demo network among many
 * stream   a number for one use of random values, which makes it independent of all others
 * drift    a random value that changes smoothly over time
 *
 * All pages of the demo network are a pure function of (seed, instant): there is no state that could be lost, and the
 * page of an earlier instant can be computed again. Therefore random values are hashes, not the output of a generator.
 */

/** The streams, each with its own number; none is used for two purposes. */
export const stream = {
  phase: 1,
  networkSlow: 2,
  networkMiddle: 3,
  networkFast: 4,
  menus: 5,
  titleOrder: 10,
  titlePhase: 11,
  titleFeature: 12,
  titleSlow: 13,
  titleMiddle: 14,
  titleFast: 15,
  titleRounding: 16,
  titleMatchSize: 17,
  titleImage: 19,
  lobbyShare: 18,
  lobbyFill: 19,
  matchLength: 30,
  matchHost: 31,
  matchFill: 32,
  boardCount: 40,
  boardForm: 41,
  boardName: 42,
  boardSize: 43,
  boardPace: 44,
  boardPar: 45,
  boardField: 46,
  entryCycle: 47,
  entryQuality: 48,
  entryDetail: 49,
  boardLife: 50,
  entryName: 51,
  eventEntry: 52,
  boardSeen: 53,
  playerBlock: 60,
  playerPlays: 61,
  playerStart: 62,
  playerLength: 63,
  playerTitle: 64,
  playerName: 65
} as const

/** Returns a value in [0, 1), a pure function of the arguments. */
export function chance(seed: number, use: number, a = 0, b = 0): number {
  let hash = mixed(seed ^ Math.imul(use, 0x9e3779b1))
  hash = mixed(hash ^ Math.imul(a | 0, 0x85ebca6b))
  hash = mixed(hash ^ Math.imul(b | 0, 0xc2b2ae35))
  return hash / 4_294_967_296
}

/** Returns an integer in [0, below). */
export function chanceBelow(below: number, seed: number, use: number, a = 0, b = 0): number {
  return Math.floor(chance(seed, use, a, b) * below)
}

/**
 * Returns a value in [-1, 1] that changes smoothly over time: random at instants `periodMs` apart, eased in between. Every key
 * has its own phase, so that keys do not turn at the same instant.
 */
export function drift(seed: number, use: number, key: number, ms: number, periodMs: number): number {
  const place = ms / periodMs + chance(seed, stream.phase, key, use)
  const point = Math.floor(place)
  const before = chance(seed, use, key, point)
  const after = chance(seed, use, key, point + 1)
  return 2 * (before + (after - before) * eased(place - point)) - 1
}

/** Maps [0, 1] to [0, 1] with a slope of 0 at both ends; constant outside. */
export function eased(share: number): number {
  const x = Math.min(1, Math.max(0, share))
  return x * x * (3 - 2 * x)
}

/** The finaliser of MurmurHash3 (Austin Appleby, public domain): every bit of the input affects every bit of the result. */
function mixed(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
