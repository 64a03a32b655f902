/** @import { ActivitySummary, TopGames } from '@gamenet/schemas' */
import { count, instant } from './format.js'
import { hashOf } from './view.js'

/**
 * Shows an answer of /api/network-stats/activity-summary in the list `facts`.
 * @param {HTMLElement} facts
 * @param {ActivitySummary} summary
 */
export function showSummary(facts, summary) {
  const most = summary.mostPlayedGame
  /** @type {[term: string, value: string | Node, note: string][]} */
  const lines = [
    ['Peak online', count(summary.peakOnline), at(summary.peakOnlineAt)],
    ['Peak lobbies', count(summary.peakLobbies), at(summary.peakLobbiesAt)],
    ['Most played', most === null ? '—' : titleLink(most), most === null ? '' : `peak ${count(most.peak)}`],
    ['Games played', count(summary.gamesWithActivityCount), ''],
    ['Counts taken', count(summary.totalSnapshotCount), '']
  ]
  facts.replaceChildren(
    ...lines.map(([term, value, note]) => {
      const line = document.createElement('div')
      const dt = document.createElement('dt')
      dt.textContent = term
      const dd = document.createElement('dd')
      const small = document.createElement('small')
      small.textContent = note
      dd.append(value, ' ', small)
      line.append(dt, dd)
      return line
    })
  )
}

/**
 * Shows an answer of /api/network-stats/top-games in the list `list`.
 * @param {HTMLElement} list
 * @param {TopGames} games
 */
export function showTopGames(list, games) {
  const highest = Math.max(1, ...games.map(({ peak }) => peak))
  list.replaceChildren(
    ...games.map((game) => {
      const item = document.createElement('li')
      const peak = document.createElement('span')
      peak.className = 'peak'
      peak.textContent = count(game.peak)
      const bar = document.createElement('span')
      bar.className = 'bar'
      bar.style.setProperty('--share', String(game.peak / highest))
      item.title = `Peak at ${instant(Date.parse(game.peakAt))}, average ${count(game.average)}`
      item.append(titleLink(game), peak, bar)
      return item
    })
  )
}

/** @param {{ titleId: string, name: string }} title */
function titleLink({ titleId, name }) {
  const link = document.createElement('a')
  link.href = hashOf({ titleId, range: '30d' })
  link.textContent = name
  return link
}

/** @param {string | null} time */
function at(time) {
  return time === null ? '' : instant(Date.parse(time))
}
