/** @import { ActivitySummary, LobbyHistory, OnlineHistory } from '@gamenet/schemas' */
/** @import { OnlineUsers, RegisteredUsers, TopGames } from '@gamenet/schemas' */
/** @import { Reply } from './ask.js' */
import { ask, serverNow } from './ask.js'
import { BoardsSection } from './boards.js'
import { count, instant, length } from './format.js'
import { HistorySection } from './history.js'
import { followStream } from './live.js'
import { MatchesSection } from './matches.js'
import { element, setText } from './nodes.js'
import { messageOf, settleAll } from './part.js'
import { PlayersSection } from './players.js'
import { poll } from './poll.js'
import { showSummary, showTopGames } from './summary.js'
import { TimesSection } from './times.js'
import { TitlesTable } from './titles.js'

/** Counts are taken every minute; after three missing ones the newest is not "now". */
const STALE_MS = 3 * 60_000
/** Slowly changing answers are requested in every 12th round, once a minute. */
const SLOW_ROUNDS = 12

const titles = new TitlesTable({ currentId: () => section.titleId })
const section = new HistorySection({ nameOf: (titleId) => titles.nameOf(titleId) })
const matches = new MatchesSection()
const boards = new BoardsSection({ onPlayer: seePlayer, onGame: (titleId) => matches.pick(titleId) })
const players = new PlayersSection({ onBoard: seeBoard })
const times = new TimesSection({ onPlayer: seePlayer, onBoard: seeBoard })
addEventListener('hashchange', pickGame)
pickGame()
/** @type {number | undefined} */
let newestMs
let round = 0
let hasSlow = false

const refreshSoon = poll(refresh, {
  onBack: () => showAge(),
  onAway: (error, waitMs) => showStatus('away', `${messageOf(error)} Trying again in ${length(waitMs)}.`)
})

followStream(refreshSoon)

/** One round of requests. Shows each answer even when another request fails, then throws the first failure. */
async function refresh() {
  const jobs = [showNow(), showTitles(), section.refresh(), boards.refresh(), matches.refresh()]
  if (round % SLOW_ROUNDS === 0 || !hasSlow) jobs.push(showSlow(), players.refresh(), times.refresh())
  round += 1
  await settleAll(jobs).catch((error) => {
    showAge()
    throw error
  })
}

function pickGame() {
  if (section.titleId !== undefined) boards.pick(section.titleId)
}

/**
 * Shows a player and moves the focus there.
 * @param {string} name
 */
function seePlayer(name) {
  players.show(name)
  element('player').focus()
}

/**
 * Shows a board and moves the focus there.
 * @param {string} titleId
 * @param {number} leaderboardId
 */
function seeBoard(titleId, leaderboardId) {
  boards.open(titleId, leaderboardId)
  element('boards-heading').focus()
}

async function showNow() {
  /** @type {[Reply<OnlineHistory>, Reply<LobbyHistory>, Reply<RegisteredUsers>]} */
  const [online, lobbies, registered] = await Promise.all([
    ask('api/network-stats/online-24h?days=1'),
    ask('api/network-stats/lobbies-24h?days=1'),
    ask('api/network-stats/registered-users')
  ])
  const newest = online.body.at(-1)
  newestMs = newest === undefined ? undefined : Date.parse(`${newest.recorded_at.replace(' ', 'T')}Z`)
  setText(element('now-online'), count(newest?.online_count))
  setText(element('now-lobbies'), count(lobbies.body.at(-1)?.lobby_count))
  setText(element('now-registered'), count(registered.body.at(-1)?.registered_count))
  document.title = newest === undefined ? 'Gamenet Stats' : `${count(newest.online_count)} online · Gamenet Stats`
}

async function showTitles() {
  /** @type {Reply<OnlineUsers>} */
  const { body } = await ask('api/online-users')
  titles.show(body)
  boards.offer(body)
  setText(element('now-titles'), count(titles.playedCount))
  section.showHeading()
}

async function showSlow() {
  /** @type {[Reply<ActivitySummary>, Reply<TopGames>]} */
  const [summary, top] = await Promise.all([
    ask('api/network-stats/activity-summary'),
    ask('api/network-stats/top-games?limit=10')
  ])
  showSummary(element('today'), summary.body)
  showTopGames(element('top-games'), top.body)
  hasSlow = true
}

/** Shows the age of the newest count and whether it is stale. */
function showAge() {
  const ageMs = newestMs === undefined ? Number.POSITIVE_INFINITY : Math.max(0, serverNow() - newestMs)
  const isStale = ageMs > STALE_MS
  document.body.classList.toggle('is-stale', isStale)
  setText(
    element('as-of'),
    newestMs === undefined
      ? 'There is no count of the last 24 hours.'
      : `As of ${instant(newestMs)}, ${length(ageMs)} ago`
  )
  if (!isStale) showStatus('live', 'Live')
  else showStatus('stale', newestMs === undefined ? 'Stale: no newest count' : `Stale: no count for ${length(ageMs)}`)
}

/**
 * @param {string} state
 * @param {string} text
 */
function showStatus(state, text) {
  element('status').dataset.state = state
  setText(element('status'), text)
}
