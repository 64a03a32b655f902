import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type UpstreamTitle = {
  readonly titleId: string
  readonly name: string
  readonly subtitle: string
  readonly online: number
  readonly lobbies: { readonly players: number; readonly sessions: number } | null
}

/** An upstream network whose pages a test writes: plain HTML to upstream.md's facts, from a plain server. */
export type Upstream = {
  readonly url: string
  /** Replaces what both pages show. */
  show(page: { registered: number; online: number; titles: readonly UpstreamTitle[] }): void
  /** Replaces the home page by any text, such as a broken one. */
  showText(home: string): void
  close(): Promise<void>
}

export async function startUpstream(): Promise<Upstream> {
  let home = ''
  let games = ''
  const server = createServer((request, response) => {
    const page = request.url === '/' ? home : request.url === '/games' ? games : undefined
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(page)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    show(page) {
      home = homePage(page)
      games = gamesPage(page.titles)
    },
    showText(text) {
      home = text
    },
    close: () => new Promise((resolve) => server.close(() => resolve()))
  }
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
  return `<tr>${firstCells(title)}<td>${title.online}</td><td>${sessions}</td><td><i></i><i></i><i class="invisible"></i><i></i></td></tr>`
}

function firstCells(title: UpstreamTitle): string {
  const text = (raw: string) => raw.replace(/&/g, '&amp;').replace(/</g, '&lt;')
  const link = `/games/${title.titleId}`
  return `<td><a href="${link}"><img src="/img/${title.titleId}.png"></a> <a href="${link}">${text(title.name)}</a><br><small>${text(title.subtitle)}</small></td>
<td>MS-001<br><small>${title.titleId.toUpperCase()}</small></td>`
}

function gamesPage(titles: readonly UpstreamTitle[]): string {
  return `<!doctype html><html><body><table class="table"><tbody>${titles.map((title) => `<tr>${firstCells(title)}</tr>`).join('\n')}</tbody></table></body></html>`
}
