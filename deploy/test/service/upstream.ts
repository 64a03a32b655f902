import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type UpstreamTitle = {
  readonly titleId: string
  readonly name: string
  readonly subtitle: string
  readonly online: number
  readonly lobbies: { readonly players: number; readonly sessions: number } | null
  /** Whether the icons of the home page show leaderboards. */
  readonly hasBoards?: boolean
}

export type UpstreamEntry = { readonly rank: number; readonly name: string; readonly score: string }
export type UpstreamBoard = {
  readonly leaderboardId: number
  readonly name: string
  readonly entries: readonly UpstreamEntry[]
}

/** The content of the page of one game. Without `boards` it has no list of them. */
export type UpstreamGame = {
  readonly lobbies: readonly { readonly host: string; readonly players: number; readonly most: number }[]
  readonly boards?: readonly UpstreamBoard[]
}

/** A row of the page of players; without a game the user is offline. */
export type UpstreamPlayer = { readonly gamertag: string; readonly username: string; readonly game?: string }

/** An upstream network whose pages a test writes: plain HTML from a plain server. */
export type Upstream = {
  readonly url: string
  /** Replaces the content of both lists. Each title gets a matching page, unless `showGame` replaces it. */
  show(page: { registered: number; online: number; titles: readonly UpstreamTitle[] }): void
  /** Replaces the home page by any text, such as a broken one. */
  showText(home: string): void
  /** Replaces the page of a game; a text is sent unchanged; null: the page is missing. */
  showGame(titleId: string, game: UpstreamGame | string | null): void
  /** Replaces the page of players; a text is sent unchanged. */
  showPlayers(players: readonly UpstreamPlayer[] | string): void
  /** The requested paths so far, in order. */
  readonly asked: string[]
  /** Paths that answer 404, even if they are listed. */
  readonly missing: Set<string>
  /** Answers that were 304, among these. */
  unchanged(): number
  /** Called with each path before it is answered; the answer is created when the promise resolves. */
  beforeAnswer: (path: string) => Promise<void>
  close(): Promise<void>
}

export async function startUpstream(): Promise<Upstream> {
  let home = ''
  let list = ''
  let players = playersPage([])
  let unchanged = 0
  let titles: readonly UpstreamTitle[] = []
  const games = new Map<string, UpstreamGame | string | null>()
  const asked: string[] = []
  const missing = new Set<string>()
  const pageAt = (path: string): string | undefined => {
    if (path === '/') return home
    if (path === '/games') return list
    if (path === '/players') return players
    const [, titleId = '', board] = /^\/games\/(\w+)(?:\?leaderboard=(\d+))?$/.exec(path) ?? []
    const title = titles.find((each) => each.titleId === titleId)
    const game = games.get(titleId) ?? (games.has(titleId) || title === undefined ? undefined : gameOf(title))
    return game === undefined || typeof game === 'string' ? game : gamePage(game, board)
  }
  const server = createServer(async (request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    await upstream.beforeAnswer(path)
    const page = missing.has(path) ? undefined : pageAt(path)
    const headers = { 'content-type': 'text/html; charset=utf-8' }
    if (page === undefined) return response.writeHead(404, headers).end()
    if (page === home || page === list) return response.writeHead(200, headers).end(page)
    const etag = `"${createHash('sha256').update(page).digest('hex').slice(0, 16)}"`
    if (request.headers['if-none-match'] !== etag) return response.writeHead(200, { ...headers, etag }).end(page)
    unchanged += 1
    return response.writeHead(304, { etag }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const upstream: Upstream = {
    url: `http://127.0.0.1:${port}`,
    show(page) {
      titles = page.titles
      home = homePage(page)
      list = gamesPage(page.titles)
    },
    showText(text) {
      home = text
    },
    showGame(titleId, game) {
      games.set(titleId, game)
    },
    showPlayers(shown) {
      players = typeof shown === 'string' ? shown : playersPage(shown)
    },
    asked,
    missing,
    unchanged: () => unchanged,
    beforeAnswer: async () => {},
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
  return upstream
}

function homePage(page: { registered: number; online: number; titles: readonly UpstreamTitle[] }): string {
  const number = (value: number, label: string) => `<div><h3>${value.toLocaleString('en-US')}</h3><p>${label}</p></div>`
  return `<!doctype html><html><body><section id="connect"><div class="row"><div><p>intro</p></div>
${number(page.registered, 'Registered Users')}${number(page.titles.length, 'Games Supported')}${number(page.online, 'Users Online Now')}
</div></section><section id="games"><table class="table"><tbody>${page.titles.map(row).join('\n')}</tbody></table></section></body></html>`
}

function row(title: UpstreamTitle): string {
  const sessions =
    title.lobbies === null
      ? '-'
      : `${title.lobbies.players} in ${title.lobbies.sessions} session${title.lobbies.sessions === 1 ? '' : 's'}`
  return `<tr>${firstCells(title)}<td>${title.online}</td><td>${sessions}</td><td><i></i><i></i><i${title.hasBoards === true ? '' : ' class="invisible"'}></i><i></i></td></tr>`
}

/** Returns a page with as many lobbies and players as the home page counts, and no list of boards. */
function gameOf({ lobbies }: UpstreamTitle): UpstreamGame {
  const { players, sessions } = lobbies ?? { players: 0, sessions: 0 }
  return {
    lobbies: Array.from({ length: sessions }, (_, at) => ({
      host: `host ${at + 1}`,
      players: Math.floor((players + at) / sessions),
      most: 16
    }))
  }
}

function gamePage({ lobbies, boards }: UpstreamGame, asked: string | undefined): string {
  const matches = lobbies.map(
    ({ host, players, most }) => `<tr><td>${text(host)}</td><td class="text-right">${players}/${most}</td></tr>`
  )
  const shown = boards?.find(({ leaderboardId }) => `${leaderboardId}` === asked)
  return `<!doctype html><html><body><table class="table table-striped"><thead><tr><th>Host</th><th>Players</th></tr></thead>
<tbody>${matches.join('')}</tbody></table>${boards === undefined ? '' : selectOf(boards, shown)}</body></html>`
}

function playersPage(players: readonly UpstreamPlayer[]): string {
  const rows = players.map(({ gamertag, username, game }) => {
    const where = game === undefined ? 'Last seen 3 days ago' : `Online in ${text(game)} for 1 minute`
    return `<tr><td>${text(gamertag)}</td><td>${text(username)}</td><td>${where}</td></tr>`
  })
  return `<!doctype html><html><body><table class="table"><tbody>${rows.join('')}</tbody></table></body></html>`
}

function selectOf(boards: readonly UpstreamBoard[], shown: UpstreamBoard | undefined): string {
  const options = boards.map(
    (board) =>
      `<option value="${board.leaderboardId}"${board === shown ? ' selected' : ''}>${text(board.name)}</option>`
  )
  const rows = shown?.entries.map(
    ({ rank, name, score }) => `<tr><td>${rank}</td><td>${text(name)}</td><td>${text(score)}</td></tr>`
  )
  const table = `<table class="table table-striped"><tbody>${rows?.join('')}</tbody></table>`
  return `<select id="leaderboard-select"><option value="">Choose</option>${options.join('')}</select>${rows ? table : ''}`
}

function text(raw: string): string {
  return raw.replace(/&/g, '&amp;').replace(/</g, '&lt;')
}

function firstCells(title: UpstreamTitle): string {
  const link = `/games/${title.titleId}`
  return `<td><a href="${link}"><img src="/img/${title.titleId}.png"></a> <a href="${link}">${text(title.name)}</a><br><small>${text(title.subtitle)}</small></td>
<td>MS-001<br><small>${title.titleId.toUpperCase()}</small></td>`
}

function gamesPage(titles: readonly UpstreamTitle[]): string {
  return `<!doctype html><html><body><table class="table"><tbody>${titles.map((title) => `<tr>${firstCells(title)}</tr>`).join('\n')}</tbody></table></body></html>`
}
