import { chance, chanceBelow, stream } from './chance.js'
import { PLAYER_COUNT, shownNameOf } from './players.js'
import type { DemoTitle } from './titles.js'

/*
 * board    a ranking of one title; its id is unique within the title only
 * form     its columns, and the format of a result
 * result   milliseconds where less is better, else points
 * cycle    a period of a player on a board: enters, improves more and more slowly, leaves; the next cycle follows
 * event    a board that is listed for a part of each period; it is empty at the start of a period and fills gradually
 * given    a board whose id and name are configured
 */

/** `score`, `raw-time` and `time` have three columns; `lap` has seven with a time, `career` eight. */
export const BOARD_FORMS = ['score', 'raw-time', 'time', 'lap', 'career'] as const
export type BoardForm = (typeof BOARD_FORMS)[number]

export type Board = {
  readonly title: DemoTitle
  readonly leaderboardId: number
  readonly name: string
  readonly form: BoardForm
  /** The period of an event; absent if the board is always listed. */
  readonly eventMs?: number
  /** Factor of the time between changes of its entries. */
  readonly slowness: number
}

/** The id and name of a given board. */
export type GivenBoard = { readonly leaderboardId: number; readonly name: string }

/** One row of a board: the cells as the page shows them, rank and name first. */
export type BoardRow = { readonly rank: number; readonly playerName: string; readonly cells: readonly string[] }

/** Upstream writes a time as a score in which higher is better: this number minus the milliseconds. */
export const RAW_TIME_TOP = 2_147_483_647

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MODES = ['Ranked', 'Quick Race', 'Time Trial', 'Career', 'Team', 'Solo', 'Online', 'Weekly']
const PLACES = [
  'Harbour',
  'Old Town',
  'Summit',
  'Canyon',
  'Foundry',
  'Coast',
  'Night City',
  'Airfield',
  'Bridge',
  'Forest'
]
const COUNTS = ['Wins', 'Points', 'Kudos', 'Rating', 'Hunts & Captures', "Hunter's Score"]
const CARS = ['Falcon GT', 'Comet S', 'R-4', 'Vortex', 'Model 12', 'Zephyr']

/** The share of boards that are events. */
const EVENT_SHARE = 0.04
/** Share of an event's period in which it is listed. */
const EVENT_LISTED_SHARE = 0.8
/** Shares of an event's period: no player has a result before the first, every player after the second. */
const EVENT_FIRST_SHARE = 0.1
const EVENT_FULL_SHARE = 0.7
/** Shares of the entries under the name of another player: in capitals, or identical. */
const SHOUTED_SHARE = 0.02
const REPEATED_SHARE = 0.004

/**
 * Returns all boards that a title ever lists, by id: the given ones; otherwise none without the leaderboards feature,
 * else 3 to about 120, mostly few. Given boards are always listed. Events are as fast in a slow world, because their
 * entries come and go with each period.
 */
export function boardsOf(seed: number, title: DemoTitle, options: BoardsOptions = {}): Board[] {
  const { given, slowness = 1 } = options
  if (given !== undefined) {
    return given.map((board, number) => ({ ...board, title, form: formOf(seed, title, number), slowness }))
  }
  if (!title.features[2]) return []
  const count = 3 + Math.floor(120 * chance(seed, stream.boardCount, title.index) ** 4)
  return Array.from({ length: count }, (_, number) => {
    const form = formOf(seed, title, number)
    const board = { title, leaderboardId: number + 1, name: boardName(seed, title, number, form), form, slowness }
    const place = placeOf(board)
    if (chance(seed, stream.boardLife, place) >= EVENT_SHARE) return board
    return { ...board, slowness: 1, eventMs: (40 + chanceBelow(320, seed, stream.boardLife, place, 1)) * MINUTE_MS }
  })
}

type BoardsOptions = {
  readonly given?: readonly GivenBoard[] | undefined
  /** Of boards that are not events; default 1. */
  readonly slowness?: number
}

/** Whether the title's page lists a board at an instant. */
export function isListedAt(seed: number, board: Board, ms: number): boolean {
  return eventShare(seed, board, ms) < EVENT_LISTED_SHARE
}

/** Returns the share of an event's period that has passed; 0 for a board that is always listed. */
function eventShare(seed: number, board: Board, ms: number): number {
  if (board.eventMs === undefined) return 0
  const turn = ms / board.eventMs + chance(seed, stream.boardLife, placeOf(board), 2)
  return turn - Math.floor(turn)
}

function formOf(seed: number, title: DemoTitle, number: number): BoardForm {
  return BOARD_FORMS[chanceBelow(BOARD_FORMS.length, seed, stream.boardForm, title.index, number)] ?? 'score'
}

/** The number of a board in streams of chance. */
function placeOf({ title, leaderboardId }: Pick<Board, 'title' | 'leaderboardId'>): number {
  return title.index * 1000 + leaderboardId
}

/**
 * Returns the rows of a board at an instant, best first; equal results share a rank (1, 1, 3) and are ordered by name.
 */
export function boardRowsAt(seed: number, board: Board, ms: number): BoardRow[] {
  const entries = contendersOf(seed, board).flatMap((contender) => entryAt(seed, board, contender, ms) ?? [])
  return ranked(board, entries).map(({ rank, entry }) => ({
    rank,
    playerName: entry.playerName,
    cells: cellsOf(seed, board, entry)
  }))
}

/** Returns entries best first, with their ranks. */
export function ranked<Ranked extends Entry>(board: Board, entries: readonly Ranked[]) {
  const isLessBetter = board.form === 'raw-time' || board.form === 'time' || board.form === 'lap'
  const sorted = entries.toSorted((a, b) =>
    a.result === b.result ? (a.playerName < b.playerName ? -1 : 1) : a.result < b.result === isLessBetter ? -1 : 1
  )
  let rank = 0
  return sorted.map((entry, index) => {
    if (index === 0 || sorted[index - 1]?.result !== entry.result) rank = index + 1
    return { rank, entry }
  })
}

/** Milliseconds as the pages write a time: `M:SS.mmm` with at least two digits of minutes, `01:23.456`. */
export function timeText(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  const seconds = Math.floor((ms % 60_000) / 1000)
  return `${pad(minutes, 2)}:${pad(seconds, 2)}.${pad(ms % 1000, 3)}`
}

/** A player of a board, who is on it for a part of each cycle. */
type Contender = {
  readonly key: number
  readonly player: number
  readonly playerName: string
  readonly lengthMs: number
  readonly phaseMs: number
  readonly paceMs: number
}

/** An entry of a board at an instant. */
export type Entry = {
  readonly player: number
  readonly playerName: string
  readonly result: number
  /** The instant of the result. */
  readonly reachedMs: number
}

/** Share of a cycle in which the player is on the board. */
const PRESENT_SHARE = 0.92

/** Returns the number of players who compete on a board. */
export function contenderCount(seed: number, board: Board): number {
  return 5 + Math.floor(90 * chance(seed, stream.boardSize, placeOf(board)) ** 3)
}

/** Returns the players who compete on a board. */
export function contendersOf(seed: number, board: Board): Contender[] {
  const place = placeOf(board)
  const firstPlayer = chanceBelow(PLAYER_COUNT, seed, stream.boardField, place)
  const playerOf = (number: number) => (firstPlayer + number * 7919) % PLAYER_COUNT
  return Array.from({ length: contenderCount(seed, board) }, (_, contender) => {
    const key = place * 128 + contender
    const lengthMs = board.slowness * (40 + chanceBelow(160, seed, stream.entryCycle, key)) * DAY_MS
    const player = playerOf(contender)
    return {
      key,
      player,
      playerName: nameOnBoard(seed, key, player, contender === 0 ? player : playerOf(contender - 1)),
      lengthMs,
      phaseMs: chanceBelow(lengthMs, seed, stream.entryCycle, key, 1),
      paceMs: board.slowness * (4 + chanceBelow(60, seed, stream.boardPace, key)) * HOUR_MS
    }
  })
}

/** Returns the entry of a player at an instant; undefined if the player is not on the board. */
export function entryAt(seed: number, board: Board, contender: Contender, ms: number): Entry | undefined {
  const { key, player, playerName, lengthMs, paceMs } = contender
  if (!hasResult(seed, board, key, ms)) return undefined
  const { cycle, cameMs } = cycleAt(contender, ms)
  if (ms - cameMs > PRESENT_SHARE * lengthMs) return undefined
  const improvements = Math.floor(Math.sqrt((ms - cameMs) / paceMs))
  const luck = chance(seed, stream.entryQuality, key, cycle)
  return {
    player,
    playerName,
    result: resultOf(parOf(seed, board, placeOf(board)), luck, improvements, board.form),
    reachedMs: cameMs + improvements ** 2 * paceMs
  }
}

/** Returns the next instant at which a player of a board that is not an event enters, improves or leaves. */
export function changeAfter(contender: Contender, ms: number): number {
  const { cameMs } = cycleAt(contender, ms)
  const { lengthMs, paceMs } = contender
  const leftMs = cameMs + Math.floor(PRESENT_SHARE * lengthMs) + 1
  if (ms >= leftMs) return cameMs + lengthMs
  const improvements = Math.floor(Math.sqrt((ms - cameMs) / paceMs))
  return Math.min(leftMs, cameMs + (improvements + 1) ** 2 * paceMs)
}

function cycleAt({ lengthMs, phaseMs }: Contender, ms: number): { readonly cycle: number; readonly cameMs: number } {
  const cycle = Math.floor((ms + phaseMs) / lengthMs)
  return { cycle, cameMs: cycle * lengthMs - phaseMs }
}

/** Whether a player has a result yet: on an event, from an instant of its period on. */
function hasResult(seed: number, board: Board, key: number, ms: number): boolean {
  if (board.eventMs === undefined) return true
  const first = EVENT_FIRST_SHARE + (EVENT_FULL_SHARE - EVENT_FIRST_SHARE) * chance(seed, stream.eventEntry, key)
  return eventShare(seed, board, ms) >= first
}

/** Returns the player's own name, or sometimes that of another player, in capitals or identical. */
function nameOnBoard(seed: number, key: number, player: number, other: number): string {
  const luck = chance(seed, stream.entryName, key)
  if (luck >= SHOUTED_SHARE) return shownNameOf(seed, player)
  return luck < REPEATED_SHARE ? shownNameOf(seed, other) : shownNameOf(seed, other).toUpperCase()
}

/** Returns the best possible result: a lap of half a minute to five minutes, or up to some millions of points. */
function parOf(seed: number, board: Board, place: number): number {
  const size = chance(seed, stream.boardPar, place)
  switch (board.form) {
    case 'score':
    case 'career':
      return Math.floor(200 * 10 ** (4 * size))
    default:
      return Math.floor(30_000 + 270_000 * size)
  }
}

function resultOf(par: number, luck: number, improvements: number, form: BoardForm): number {
  const shortfall = luck / (1 + 0.08 * improvements)
  // Points are multiples of ten, so that some are equal; times in milliseconds rarely are.
  if (form === 'score' || form === 'career') return 10 * Math.floor((par * (1 - 0.9 * shortfall)) / 10)
  return Math.floor(par * (1 + 0.4 * shortfall))
}

/** Returns the cells of an entry behind its name, as the page shows them. */
export function cellsOf(seed: number, board: Board, { player, result, reachedMs }: Entry): string[] {
  switch (board.form) {
    case 'score':
      return [String(result)]
    case 'raw-time':
      return [String(RAW_TIME_TOP - result)]
    case 'time':
      return [timeText(result)]
    case 'lap': {
      const date = new Date(reachedMs).toISOString().slice(0, 19).replace('T', ' ')
      const location = PLACES[chanceBelow(PLACES.length, seed, stream.entryDetail, board.leaderboardId)] ?? ''
      const car = CARS[chanceBelow(CARS.length, seed, stream.entryDetail, player, board.leaderboardId)] ?? ''
      return [date, location, `${location} Circuit`, car, timeText(result)]
    }
    case 'career': {
      const races = Math.floor(result / 40)
      const [firsts, seconds, thirds] = [Math.floor(races / 4), Math.floor(races / 5), Math.floor(races / 7)]
      const kudosRank = Math.floor(Math.log2(result + 1))
      return [firsts, seconds, thirds, races, kudosRank, result].map(String)
    }
  }
}

function boardName(seed: number, title: DemoTitle, number: number, form: BoardForm): string {
  const pick = (words: readonly string[], use: number) =>
    words[chanceBelow(words.length, seed, stream.boardName, title.index * 1000 + number, use)] ?? ''
  const measure = form === 'score' ? pick(COUNTS, 2) : form === 'career' ? 'Kudos' : 'Best Time'
  return `${pick(MODES, 0)} - ${pick(PLACES, 1)} ${number + 1} - ${measure}`
}

function pad(value: number, digits: number): string {
  return String(value).padStart(digits, '0')
}
