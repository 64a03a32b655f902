/** @import { LobbyHistory, OnlineHistory, OnlineUsers, RegisteredUsers } from '@gamenet/schemas' */
import { amend, follow, outdate, supply } from './ask.js'

const PATH = 'api/stream?kinds=live-counts,count,change'
const COUNTS = 'api/online-users'
/** Boards change in bursts: their answers are requested again once in so long. */
const BOARDS_MS = 30_000
/** Until a stream that was refused is opened again: a proxy answers 502 while the service restarts. */
const REOPEN_MS = 60_000

/**
 * @typedef {{ recorded_at: string, registered_count: number | null, online_count: number | null, lobby_count: number |
 * null }} Count
 */

/**
 * Follows the event stream while the page is visible, and keeps the cached answers current by it: what the stream does
 * not concern is not requested again. Calls `onChange` after changes. Without a stream the page polls.
 * @param {() => void} onChange
 */
export function followStream(onChange) {
  /** @type {EventSource | undefined} */
  let source
  /** @type {OnlineUsers} */
  let games = {}
  let isWaiting = false
  const open = () => {
    if (document.hidden || source !== undefined) return
    source = new EventSource(PATH)
    source.addEventListener('state', ({ data }) => {
      follow(true)
      games = JSON.parse(data)
      supply(COUNTS, games)
      onChange()
    })
    source.addEventListener('difference', ({ data }) => {
      const { changed, gone } = JSON.parse(data)
      const folded = new Map(Object.entries(games))
      // Of a game that was known before, only the fields that have changed.
      for (const [name, fields] of Object.entries(changed)) folded.set(name, { ...folded.get(name), ...fields })
      for (const name of gone) folded.delete(name)
      games = Object.fromEntries(folded)
      outdate(/^api\/title\//)
      supply(COUNTS, games)
      onChange()
    })
    source.addEventListener('count', ({ data }) => {
      addCount(JSON.parse(data).data)
      onChange()
    })
    source.addEventListener('change', () => {
      if (isWaiting) return
      isWaiting = true
      setTimeout(() => {
        isWaiting = false
        outdate(/^api\/(leaderboard-changes|game|player|datasearch)/)
        onChange()
      }, BOARDS_MS)
    })
    source.addEventListener('retracted', () => {
      outdate(/./)
      onChange()
    })
    source.addEventListener('error', () => {
      follow(false)
      // Refused: it does not reconnect by itself.
      if (source?.readyState !== EventSource.CLOSED) return
      close()
      setTimeout(open, REOPEN_MS * (0.5 + Math.random()))
    })
  }
  const close = () => {
    source?.close()
    source = undefined
    follow(false)
  }
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()))
  addEventListener('online', open)
  open()
}

/**
 * Adds a count to the cached series that have every sample, and outdates the others.
 * @param {Count} count
 */
function addCount({ recorded_at, online_count, lobby_count, registered_count }) {
  outdate(/^api\/network-stats\/(?!registered|.*days=1$)/)
  if (online_count !== null) {
    amend('api/network-stats/online-24h?days=1', (/** @type {OnlineHistory} */ points) =>
      added(points, { recorded_at, online_count })
    )
  }
  if (lobby_count !== null) {
    amend('api/network-stats/lobbies-24h?days=1', (/** @type {LobbyHistory} */ points) =>
      added(points, { recorded_at, lobby_count })
    )
  }
  if (registered_count !== null) {
    const date = recorded_at.slice(0, 10)
    amend('api/network-stats/registered-users', (/** @type {RegisteredUsers} */ days) =>
      days.at(-1)?.date === date ? [...days.slice(0, -1), { date, registered_count }] : undefined
    )
  }
}

/**
 * The points with a newer one behind them; undefined if it is not the newest.
 * @template {{ recorded_at: string }} Point
 * @param {readonly Point[]} points
 * @param {Point} point
 */
function added(points, point) {
  const last = points.at(-1)
  return last !== undefined && last.recorded_at < point.recorded_at ? [...points, point] : undefined
}
