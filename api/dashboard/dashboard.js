import { ask, serverNow } from './ask.js'
import { BoardsSection } from './boards.js'
import { count, instant, length } from './format.js'
import { HistorySection, setText } from './history.js'
import { MatchesSection } from './matches.js'
import { PlayersSection } from './players.js'
import { poll } from './poll.js'
import { showSummary, showTopGames } from './summary.js'
import { TimesSection } from './times.js'
import { TitlesTable } from './titles.js'

/** Counts are taken every minute; when three are missing, what is shown is not "now". */
const STALE_MS = 3 * 60_000
/** What changes slowly is asked in every 12th round, once a minute. */
const SLOW_ROUNDS = 12

const element = (id) => document.getElementById(id)

const titles = new TitlesTable({ currentId: () => section.titleId })
const section = new HistorySection({ nameOf: (titleId) => titles.nameOf(titleId) })
const matches = new MatchesSection()
const boards = new BoardsSection({ onPlayer: seePlayer, onGame: (titleId) => matches.pick(titleId) })
const players = new PlayersSection({ onBoard: seeBoard })
const times = new TimesSection({ onPlayer: seePlayer, onBoard: seeBoard })
// Whoever looks at a game will look at its boards.
addEventListener('hashchange', pickGame)
pickGame()
let newestMs
let round = 0
let hasSlow = false

poll(refresh, {
  onBack: () => showAge(),
  onAway: (error, waitMs) => showStatus('away', `${error.message} Trying again in ${length(waitMs)}.`)
})

/** One round of questions. What comes is shown even when something else fails; then the first failure is thrown. */
async function refresh() {
  const jobs = [showNow(), showTitles(), section.refresh(), boards.refresh(), matches.refresh()]
  if (round % SLOW_ROUNDS === 0 || !hasSlow) jobs.push(showSlow(), players.refresh(), times.refresh())
  round += 1
  const failure = (await Promise.allSettled(jobs)).find(({ status }) => status === 'rejected')
  if (failure !== undefined) {
    showAge()
    throw failure.reason
  }
}

function pickGame() {
  if (section.titleId !== undefined) boards.pick(section.titleId)
}

/** A name was pressed: the keyboard goes where the answer comes. */
function seePlayer(name) {
  players.show(name)
  element('player').focus()
}

function seeBoard(titleId, leaderboardId) {
  boards.open(titleId, leaderboardId)
  element('boards-heading').focus()
}

async function showNow() {
  const [online, lobbies, registered] = await Promise.all(
    ['online-24h?days=1', 'lobbies-24h?days=1', 'registered-users'].map((path) => ask(`api/network-stats/${path}`))
  )
  const newest = online.body.at(-1)
  newestMs = newest === undefined ? undefined : Date.parse(`${newest.recorded_at.replace(' ', 'T')}Z`)
  setText(element('now-online'), count(newest?.online_count))
  setText(element('now-lobbies'), count(lobbies.body.at(-1)?.lobby_count))
  setText(element('now-registered'), count(registered.body.at(-1)?.registered_count))
  document.title = newest === undefined ? 'Gamenet Stats' : `${count(newest.online_count)} online · Gamenet Stats`
}

async function showTitles() {
  const { body } = await ask('api/online-users')
  titles.show(body)
  boards.offer(body)
  setText(element('now-titles'), count(titles.playedCount))
  section.showHeading()
}

async function showSlow() {
  const [summary, top] = await Promise.all([
    ask('api/network-stats/activity-summary'),
    ask('api/network-stats/top-games?limit=10')
  ])
  showSummary(element('today'), summary.body)
  showTopGames(element('top-games'), top.body)
  hasSlow = true
}

/** Says how old the newest count is, and whether that is still "now". */
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

function showStatus(state, text) {
  element('status').dataset.state = state
  setText(element('status'), text)
}
