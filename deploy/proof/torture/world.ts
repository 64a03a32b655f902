import type {
  UpstreamBoard,
  UpstreamEntry,
  UpstreamGame,
  UpstreamPlayer,
  UpstreamTitle
} from '../../test/service/upstream.js'

/*
 * The pages of upstream: a pure function of seed and step, so the harness stores only the number of steps. One of the numbers of
 * each page encodes its step, so rows identify their page.
 */

export type Shown = {
  readonly registered: number
  readonly online: number
  readonly titles: readonly UpstreamTitle[]
  readonly games: ReadonlyMap<string, UpstreamGame>
  readonly players: readonly UpstreamPlayer[]
}

const TITLES = 4
const BOARDS = [1, 2] as const
const BOARD_PLAYERS = 16
const LOBBIES_MAX = 4
const PLAYERS = 20
const TAG = 'Tag '
/** Greater than the random count of a title: the rest of the number is the step. */
const ONLINE_MAX = 500
export const REGISTERED_FROM = 10_000
export const LOBBY_MOST_FROM = 1000
const TIME_MAX = 2_147_483_647
const SCORE_FROM = 1_000_000
/** Steps for which a board stays unchanged. */
const BOARD_STEPS = 2

/** Returns a number in [0, 1), a pure function of the arguments. */
export function chance(...of: readonly number[]): number {
  let hash = 2_166_136_261
  for (const each of of) {
    hash = Math.imul(hash ^ (each | 0), 16_777_619)
    hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_507)
    hash = Math.imul(hash ^ (hash >>> 13), 3_266_489_909)
  }
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

export function wholeChance(below: number, ...of: readonly number[]): number {
  return Math.floor(chance(...of) * below)
}

export const titleIds: readonly string[] = Array.from({ length: TITLES }, (_, title) =>
  (0x4d530000 + title).toString(16)
)
export const boardsOfAll: readonly { readonly titleId: string; readonly leaderboardId: number }[] = titleIds.flatMap(
  (titleId) => BOARDS.map((leaderboardId) => ({ titleId, leaderboardId }))
)

export function shownAt(seed: number, step: number): Shown {
  const games = new Map(
    titleIds.map((titleId, title) => [
      titleId,
      {
        lobbies: lobbiesAt(seed, title, step),
        boards: BOARDS.map((board) => boardAt(seed, titleId, board, Math.floor(step / BOARD_STEPS)))
      }
    ])
  )
  const titles = titleIds.map((titleId, title): UpstreamTitle => {
    const lobbies = games.get(titleId)?.lobbies ?? []
    return {
      titleId,
      name: `Game ${title}`,
      subtitle: `Subtitle ${Math.floor(step / 7) % 5}`,
      online: step * ONLINE_MAX + wholeChance(ONLINE_MAX, seed, step, title, 1),
      lobbies: { players: lobbies.reduce((sum, { players }) => sum + players, 0), sessions: lobbies.length },
      hasBoards: true
    }
  })
  return {
    registered: REGISTERED_FROM + step,
    online: wholeChance(5000, seed, step, 2),
    titles,
    games,
    players: playersAt(seed, step)
  }
}

export function lobbiesAt(seed: number, title: number, step: number): UpstreamGame['lobbies'] {
  const more = wholeChance(LOBBIES_MAX, seed, title, Math.floor(step / 3), 3)
  return Array.from({ length: 1 + more }, (_, at) => ({
    host: `host ${at === 0 ? 0 : wholeChance(6, seed, title, Math.floor(step / 5), at, 4)}`,
    players: 1 + wholeChance(8, seed, title, step, at, 5),
    most: at === 0 ? LOBBY_MOST_FROM + step : 16
  }))
}

/** Returns the step of the page with this count of a title. */
export function stepOfOnline(online: number): number {
  return Math.floor(online / ONLINE_MAX)
}

/** Returns the step of the page with this gamertag. */
export function stepOfTag(gamertag: string): number {
  return Number(gamertag.slice(TAG.length))
}

export function playersAt(seed: number, step: number): UpstreamPlayer[] {
  return Array.from({ length: PLAYERS }, (_, player) => {
    const names = { gamertag: `${TAG}${step}`, username: `Player ${player}` }
    const isOnline = chance(seed, player, Math.floor(step / 4), 6) < 0.6
    return isOnline ? { ...names, game: `Game ${wholeChance(4, seed, player, Math.floor(step / 6), 7)}` } : names
  })
}

/** Returns a board whose first entry encodes the version. */
export function boardAt(seed: number, titleId: string, leaderboardId: number, version: number): UpstreamBoard {
  const isTimes = leaderboardId === 2
  const at = [seed, Number.parseInt(titleId, 16), leaderboardId] as const
  const entries = Array.from({ length: BOARD_PLAYERS }, (_, player) => {
    const phase = Math.floor((version + player) / 4)
    return {
      name: `player ${player}`,
      points: wholeChance(12, ...at, player, phase),
      isHere: chance(...at, player, phase, 8) < 0.85
    }
  })
    .filter(({ isHere }) => isHere)
    .sort((a, b) => b.points - a.points || (a.name < b.name ? -1 : 1))
  const first = { rank: 1, name: 'clock', score: scoreOfVersion(isTimes, version) }
  const others = entries.map(
    ({ name, points }): UpstreamEntry => ({
      rank: 2 + entries.filter((other) => other.points > points).length,
      name,
      score: `${isTimes ? TIME_MAX - SCORE_FROM - 1000 * (13 - points) : points}`
    })
  )
  return { leaderboardId, name: `Board ${leaderboardId}`, entries: [first, ...others] }
}

function scoreOfVersion(isTimes: boolean, version: number): string {
  return `${isTimes ? TIME_MAX - SCORE_FROM + version : SCORE_FROM + version}`
}

/** Returns the version of the board whose first entry has this score. */
export function versionOfScore(leaderboardId: number, score: string): number {
  return leaderboardId === 2 ? Number(score) - TIME_MAX + SCORE_FROM : Number(score) - SCORE_FROM
}

/** Returns the content of an imported file: hourly counts of its own title. */
export function importedFile(seed: number, file: number): { titleId: string; text: string; online: readonly number[] } {
  const titleId = (0x5f000000 + file).toString(16)
  const rows = file % 5 === 4 ? 20_000 : 200
  const online = Array.from({ length: rows }, (_, row) => wholeChance(1000, seed, file, row, 9))
  const lines = online.map((count, row) => `${titleId},${IMPORT_FROM_S + row * 3600},${count}`)
  return { titleId, text: ['titleId,observedAt,online', ...lines].join('\n'), online }
}

export const IMPORT_FROM_S = 1_262_304_000
