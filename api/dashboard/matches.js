/** @import { Matches, MatchStats } from '@gamenet/schemas' */
import { count, counted, instant } from './format.js'
import { element, elementOf, isolated, node, numberCell, replaceChildren, rowHeader, setText } from './nodes.js'
import { Part, settleAll } from './part.js'

const LOBBIES_SHOWN = 50
const HOSTS_SHOWN = 3
const NO_GAME = 'Pick a game to see its matches.'

/** The lobbies of a game's newest list, the fullest first, and statistics of 30 days. */
export class MatchesSection {
  #game = ''
  /** @type {Part<Matches>} */
  #lobbies = new Part({
    message: element('matches-message'),
    contents: [element('matches-table'), element('matches-foot')],
    draw: drawLobbies
  })
  /** @type {Part<MatchStats>} */
  #stats = new Part({
    message: element('match-stats-message'),
    contents: [element('match-stats')],
    draw: drawStats
  })

  /**
   * Shows the matches of a game.
   * @param {string} titleId "" for none
   */
  pick(titleId) {
    this.#game = titleId
    void this.refresh().catch(() => undefined)
  }

  /** Requests the answers again. Throws `Away`. */
  async refresh() {
    if (this.#game === '') {
      this.#lobbies.clear(NO_GAME)
      this.#stats.clear('')
      return
    }
    const path = `api/title/${this.#game}/matches`
    elementOf('matches-data', HTMLAnchorElement).href = path
    await settleAll([this.#lobbies.show(path), this.#stats.show(`${path}/stats`)])
  }
}

/** @param {Matches} answer */
function drawLobbies({ matches }) {
  const shown = matches.toSorted((a, b) => b.currentPlayers - a.currentPlayers).slice(0, LOBBIES_SHOWN)
  const rows = shown.map(({ hostName, currentPlayers, maxPlayers }) => {
    const players = maxPlayers === 0 ? count(currentPlayers) : `${count(currentPlayers)} of ${count(maxPlayers)}`
    return node('tr', '', rowHeader(isolated(hostName)), numberCell(players))
  })
  replaceChildren(element('matches-lobbies'), rows)
  const [newest] = matches
  if (newest === undefined) return 'No match is open in the newest list.'
  const size = matches.length > shown.length ? `The fullest ${shown.length} of ` : ''
  const at = instant(Date.parse(`${newest.timestamp.replace(' ', 'T')}Z`))
  setText(element('matches-facts'), `${size}${counted(matches.length, 'open lobby', 'open lobbies')}, ${at}`)
  return ''
}

/** @param {MatchStats} stats */
function drawStats(stats) {
  const { matches24h, matches30d, averageDurationMinutes, averagePlayers, busiestHourUtc } = stats
  const { peakConcurrentMatches, peakConcurrentMatchesAt, topHosts } = stats
  /** @type {[name: string, value: string, small: string][]} */
  const facts = [
    ['Matches in 24 hours', count(matches24h), ''],
    ['In 30 days', count(matches30d), `${averageDurationMinutes} min and ${averagePlayers} players on average`],
    [
      'Most at once',
      count(peakConcurrentMatches),
      instant(Date.parse(peakConcurrentMatchesAt ?? '1970-01-01T00:00:00Z'))
    ],
    ['Busiest hour', busiestHourUtc === null ? '—' : `${String(busiestHourUtc).padStart(2, '0')}:00 UTC`, '']
  ]
  const rows = facts.map(([name, value, small]) => fact(name, value, small))
  const hosts = topHosts
    .slice(0, HOSTS_SHOWN)
    .flatMap(({ hostName }, n) => [...(n === 0 ? [] : [', ']), isolated(hostName)])
  rows.push(node('div', '', node('dt', '', 'Most matches opened'), node('dd', '', ...hosts)))
  element('match-stats').replaceChildren(...rows)
  return matches30d === 0 ? 'No match was seen in 30 days.' : ''
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} small
 */
function fact(name, value, small) {
  return node('div', '', node('dt', '', name), node('dd', '', value, node('small', '', small)))
}
