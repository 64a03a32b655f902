import { z } from 'zod'
import type { Facts } from './facts.js'
import { boardAt, boardsOfAll, titleIds, versionOfScore } from './world.js'

/*
 * Readers, while processes and engines die and tables are swapped. Each answer must be complete or a 503 with Retry-After, and
 * a board must equal one page, not parts of two.
 */

const REQUESTS_MS_MAX = 60_000
/** Complete answers, and the empty answer for a game that no page has shown. */
const RIGHT: ReadonlySet<number> = new Set([200, 404])
const AWAY = 503
const Board = z.object({ entries: z.array(z.object({ rank: z.string(), name: z.string(), rating: z.string() })) })

const PATHS: readonly string[] = [
  '/api/online-users',
  '/api/network-stats/online-24h',
  '/api/network-stats/top-games?days=7',
  `/api/title/${titleIds[0]}/online-users/history`,
  `/api/title/${titleIds[1]}/matches`,
  '/api/leaderboard-changes?limit=100',
  '/api/player/player%203'
]

/** Creates readers of processes, and counts their answers and temporary refusals. */
export function readersOf(facts: Facts, say: (sentence: string) => void) {
  const counts = { answers: 0, refusals: 0 }
  /** Boards whose entries a process has shown: its later answers must have entries too. */
  const shownBy = new Set<string>()
  const ask = async (url: string): Promise<unknown> => {
    const answer = await fetch(url, { signal: AbortSignal.timeout(REQUESTS_MS_MAX) })
    const text = await answer.text()
    if (answer.status === AWAY && answer.headers.has('retry-after')) {
      counts.refusals += 1
      return undefined
    }
    if (RIGHT.has(answer.status)) counts.answers += 1
    else say(`${url}: ${answer.status} ${text.slice(0, 300)}`)
    return answer.status === 200 ? JSON.parse(text) : undefined
  }
  return {
    counts,
    /** Sends one request per round, to one process; returns true if it was answered. */
    reader:
      (url: string) =>
      async (round: number): Promise<boolean> => {
        if (round % 2 === 0) return (await ask(url + PATHS[(round / 2) % PATHS.length])) !== undefined
        const { titleId, leaderboardId } = boardsOfAll[((round - 1) / 2) % boardsOfAll.length] ?? {}
        if (titleId === undefined || leaderboardId === undefined) return true
        const body = await ask(`${url}/api/game/${titleId}/leaderboards/${leaderboardId}`)
        if (body === undefined) return false
        const entries = Board.parse(body).entries
        const board = `${url} ${titleId} ${leaderboardId}`
        // A board is listed before its page is read.
        if (entries.length === 0 && !shownBy.has(board)) return true
        shownBy.add(board)
        const version = versionOfScore(leaderboardId, entries[0]?.rating ?? '')
        const shown = boardAt(facts.seed, titleId, leaderboardId, version).entries
        const [found, wanted] = [
          entries.map(({ rank, name, rating }) => `${rank} ${name} ${rating}`),
          shown.map(({ rank, name, score }) => `${rank} ${name} ${score}`)
        ].map((lines) => lines.sort().join('; '))
        if (found !== wanted) say(`${url}: board ${leaderboardId} of ${titleId} shows ${found}, but its page ${wanted}`)
        return true
      }
  }
}
