import { type Board, boardRowsAt } from './boards.js'
import type { Sighting } from './players.js'
import type { DemoTitle } from './titles.js'
import type { TitleState, World } from './world.js'

/*
 * The pages of the network as HTML. `origin` is the network's own address, for links and for images with absolute addresses.
 */

/** The home page `/`: the network's counts and a row for every title. */
export function homePage(world: World, ms: number, origin: string): string {
  const network = world.networkAt(ms)
  const numbers: readonly [number, string][] = [
    [network.registered, 'Registered Users'],
    [world.titles.length, 'Games Supported'],
    [network.online, 'Users Online Now']
  ]
  const connect = numbers.map(([number, label]) => `<div><h3>${withCommas(number)}</h3><p>${label}</p></div>`)
  return page(
    'Home',
    `<section id="connect"><div class="row">
<div><p>A network of old games, and of those who still play them.</p></div>
${connect.join('\n')}
</div></section>
<section id="games"><table class="table"><thead><tr><th>Name</th><th>ID</th><th>Online</th><th>Active</th><th>Features</th></tr></thead><tbody>
${network.titles.map((state) => homeRow(state, origin)).join('\n')}
</tbody></table></section>`
  )
}

/** The games page `/games`: the first two cells of the home page for every title. */
export function gamesPage(world: World, origin: string): string {
  const rows = world.titles.map((title) => `<tr>\n${titleCells(title, origin)}\n</tr>`)
  return page(
    'Games',
    `<section id="games"><table class="table"><thead><tr><th>Name</th><th>ID</th></tr></thead><tbody>
${rows.join('\n')}
</tbody></table></section>`
  )
}

/** A title's page `/games/<titleId>`: its matches, the list of its boards, and the chosen board. */
export function gamePage(world: World, title: DemoTitle, ms: number, chosen: Board | undefined): string {
  const boards = world.boardsAt(title, ms).map((board) => {
    const isChosen = board.leaderboardId === chosen?.leaderboardId ? ' selected' : ''
    return `<option value="${board.leaderboardId}"${isChosen}>${escaped(board.name)}</option>`
  })
  // Only some titles have an empty first option.
  const placeholder = title.index % 4 === 3 ? [] : ['<option value="">Choose a leaderboard</option>']
  const choice = `<select id="leaderboard-select" class="form-control">
${[...placeholder, ...boards].join('\n')}
</select>`
  return page(
    title.name,
    `<h1>${escaped(title.name)}</h1>
${matchTable(world, title, ms)}
${boards.length > 0 ? choice : ''}
${chosen === undefined ? '' : boardTable(world.seed, chosen, ms)}`
  )
}

const MODES = ['Free for all', 'Team & Flag', 'Race', 'Co-op']

/** The header of the first column differs between titles, and some have a column between host and players. */
function matchTable(world: World, title: DemoTitle, ms: number): string {
  const host = title.matchSize > 8 ? 'Server' : 'Host'
  const hasMode = title.index % 5 === 2
  const rows = world.matchesAt(title, ms).map(({ hostName, currentPlayers, maxPlayers }, place) => {
    const mode = hasMode ? `\n<td>${escaped(MODES[place % MODES.length] ?? '')}</td>` : ''
    return `<tr><td>${escaped(hostName)}</td>${mode}
<td class="text-right">${currentPlayers}/${maxPlayers}</td></tr>`
  })
  return `<table class="table table-striped"><thead><tr><th>${host}</th>${hasMode ? '<th>Mode</th>' : ''}<th class="text-right">Players</th></tr></thead><tbody>
${rows.join('\n')}
</tbody></table>`
}

/** The players page `/players`: the state of every user, or the last sighting. */
export function playersPage(world: World, ms: number): string {
  const rows = world.sightingsAt(ms).map(
    (sighting) => `<tr><td>${escaped(sighting.gamertag)}</td><td>${escaped(sighting.username)}</td>
<td>${whereabouts(sighting, ms)}</td></tr>`
  )
  return page(
    'Players',
    `<table class="table"><thead><tr><th>Gamertag</th><th>User</th><th>Status</th></tr></thead><tbody>
${rows.join('\n')}
</tbody></table>`
  )
}

/** An error page, such as for an unknown title. */
export function refusalPage(sentence: string): string {
  return page('Not here', `<p>${escaped(sentence)}</p>`)
}

/** The name of a title's picture below `/img/`. */
export function titleImageName(title: DemoTitle): string {
  return `${title.productCode.replace('-', '')}.svg`
}

/**
 * The cells of a title on the games page and the home page; absolute addresses for every third title, so that both
 * forms occur.
 */
function titleCells(title: DemoTitle, origin: string): string {
  const address = `${origin}/games/${title.titleId}`
  const image = `${title.index % 3 === 0 ? origin : ''}/img/${titleImageName(title)}`
  return `<td><a href="${address}"><img class="i" src="${image}" alt=""></a> <a href="${address}">${escaped(title.name)}</a><br><small class="text-muted">${escaped(title.subtitle)}</small></td>
<td>${title.productCode}<br>
<small class="text-muted">${title.titleId.toUpperCase()}</small></td>`
}

function homeRow({ title, online, lobbies, lobbyPlayers }: TitleState, origin: string): string {
  const active = lobbies === 0 ? '-' : `${lobbyPlayers} in ${lobbies} ${lobbies === 1 ? 'session' : 'sessions'}`
  const icons = title.features.map((has, place) => `<i class="${ICONS[place]}${has ? '' : ' invisible'}"></i>`)
  return `<tr>
${titleCells(title, origin)}
<td class="text-right">${online}</td>
<td class="text-right">${active}</td>
<td>${icons.join('')}</td>
</tr>`
}

const ICONS = ['icon-live', 'icon-match', 'icon-board', 'icon-content']

function boardTable(seed: number, board: Board, ms: number): string {
  const rows = boardRowsAt(seed, board, ms).map(({ rank, playerName, cells }) => {
    const texts = [String(rank), playerName, ...cells]
    return `<tr>${texts.map((text) => `<td>${escaped(text)}</td>`).join('')}</tr>`
  })
  const headers = HEADERS[board.form].map((header) => `<th>${header}</th>`).join('')
  return `<h2>${escaped(board.name)}</h2>
<table class="table table-striped"><thead><tr>${headers}</tr></thead><tbody>
${rows.join('\n')}
</tbody></table>`
}

const SHORT = ['Rank', 'Name', 'Score']
const HEADERS = {
  score: SHORT,
  'raw-time': SHORT,
  time: ['Rank', 'Name', 'Time'],
  lap: ['Rank', 'Name', 'Date', 'Location', 'Circuit', 'Car', 'Time'],
  career: ['Rank', 'Name', 'Firsts', 'Seconds', 'Thirds', 'Races', 'Kudos Rank', 'Kudos']
} as const

function whereabouts({ playing, lastSeenMs }: Sighting, ms: number): string {
  if (playing === undefined) return `Last seen ${durationText(ms - lastSeenMs)} ago`
  return `Online in ${escaped(playing.title.name)} for ${durationText(ms - playing.sinceMs)}`
}

/** Returns a duration in its largest unit: `1 minute`, `3 hours`; below a minute it is `0 minutes`. */
function durationText(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return counted(minutes, 'minute')
  if (minutes < 48 * 60) return counted(Math.floor(minutes / 60), 'hour')
  return counted(Math.floor(minutes / (24 * 60)), 'day')
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)} - Demo Network</title></head><body>
${body}
</body></html>
`
}

const thousands = new Intl.NumberFormat('en-US')

function withCommas(number: number): string {
  return thousands.format(number)
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;'
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}
