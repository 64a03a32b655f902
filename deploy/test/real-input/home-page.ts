import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { until } from '@gamenet/engines/testing'
import type { Test } from 'tap'
import { z } from 'zod'
import type { TestService } from '../boards-service.js'
import { gamenet, gamenetJson } from '../service/gamenet.js'
import { sharedFile } from '../service/recorded.js'
import { otherCase } from './titles.js'

/* A home page like the real ones; every answer is compared with values that plain expressions read from it. */

/** Served if the recorded page is missing: a similar page, with names that must be encoded. */
const WRITTEN_PAGE = `<!doctype html><html><body>
<section id="connect"><div class="row"><div><p>intro</p></div>
<div><h3>1,021,345</h3><p>Registered Users</p></div>
<div><h3>2</h3><p>Games Supported</p></div>
<div><h3>1,087</h3><p>Users Online Now</p></div></div></section>
<section id="games"><table class="table"><tbody>
<tr><td><a href="/games/4d530064"><img src="/img/MS100.png"></a> <a href="/games/4d530064">Halo 2</a><br><small>Halo 2</small></td>
<td>MS-100<br><small>4D530064</small></td><td>1,041</td><td>16 in 3 sessions</td><td><i></i><i></i><i></i><i></i></td></tr>
<tr><td><a href="/games/4d53004b"><img src="/img/MS075.png"></a> <a href="/games/4d53004b">Live / Starter #2</a><br><small>Starter</small></td>
<td>MS-075<br><small>4D53004B</small></td><td>5</td><td>-</td><td><i></i><i></i><i></i><i></i></td></tr>
</tbody></table></section></body></html>`

/** Starts the plain file server whose page {@link provesHomePage} writes: an upstream without other pages. */
export const startPages = (t: Test): Promise<string> => startFileServer(t, join(t.testdirName, 'pages'))

/** The network's own page, from the file server of `upstream`, is scraped by a service that has seen no page yet. */
export async function provesHomePage(t: Test, service: TestService, upstream: string): Promise<void> {
  const shared = await sharedFile('upstream-home-example.html')
  t.comment(shared === undefined ? 'NO ../shared/data, so a page that the test writes is served' : `serving ${shared}`)
  const html = shared === undefined ? WRITTEN_PAGE : await readFile(shared, 'utf8')
  const page = pageOf(html)
  await mkdir(join(service.directory, 'pages'))
  await writeFile(join(service.directory, 'pages', 'index.html'), html)
  const { environment, get } = service
  const [run] = z
    .array(z.object({ outcome: z.string(), observedAt: z.iso.datetime(), durationMs: z.int() }))
    .parse(await gamenetJson(environment, ['scrape', 'network']))
  t.equal(run?.outcome, 'succeeded')
  await service.caughtUp()
  // A sample has the second in which the page arrived, the run the one in which it began.
  const [{ recorded_at: at } = { recorded_at: '' }] = z
    .array(z.object({ recorded_at: z.string() }))
    .parse(await get('/api/network-stats/online-24h'))
  const sinceBeginMs = Date.parse(`${at.replace(' ', 'T')}Z`) - Date.parse(run?.observedAt ?? '')
  t.ok(sinceBeginMs > -1000 && sinceBeginMs <= (run?.durationMs ?? 0), 'a sample of this run')
  const sessions = page.titles.reduce((sum, title) => sum + title.sessions, 0)
  const shown = new Map(page.titles.map((title) => [title.name, title]))

  await t.test('its counts are those of the network', async (t) => {
    t.same(await get('/api/network-stats/online-24h'), [{ recorded_at: at, online_count: page.online }])
    t.same(await get('/api/network-stats/lobbies-24h'), [{ recorded_at: at, lobby_count: sessions }])
    t.same(await get('/api/network-stats/registered-users'), [
      { date: at.slice(0, 10), registered_count: page.registered }
    ])
    t.match(await get('/api/network-stats/daily-online'), [
      { date: at.slice(0, 10), min_online: page.online, max_online: page.online, avg_online: page.online, samples: 1 }
    ])
    const most = [...page.titles].sort((a, b) => b.online - a.online)[0]
    t.match(await get('/api/network-stats/activity-summary'), {
      peakOnline: page.online,
      peakLobbies: sessions,
      mostPlayedGame: { name: most?.name, titleId: most?.titleId, peak: most?.online },
      gamesWithActivityCount: page.titles.filter((title) => title.online > 0).length,
      totalSnapshotCount: 1
    })
  })

  await t.test('its table has the titles, their facts and their counts', async (t) => {
    const live = z.record(z.string(), z.unknown()).parse(await get('/api/online-users'))
    t.same(Object.keys(live).sort(), [...shown.keys()].sort(), 'the titles of the page, none else')
    t.same(await get('/api/games'), [...shown.keys()].sort(new Intl.Collator('en').compare))
    for (const title of page.titles) {
      const image = new URL(title.image, upstream).href
      t.match(live[title.name], {
        name: title.name,
        online: title.online,
        titleId: title.titleId,
        image,
        activeLobbies: title.sessions,
        sessionCount: title.sessions,
        activeLobbyPlayers: title.players,
        hasActiveSession: title.sessions > 0,
        publisher: ''
      })
      const described = { titleId: title.titleId, name: title.name, title: title.subtitle, image }
      for (const key of [title.titleId, title.titleId.toUpperCase(), encodeURIComponent(otherCase(title.name))]) {
        t.match(await get(`/api/game/${key}`), { ...described, publisher: '', releaseDate: '' }, key)
      }
      t.same(await get(`/api/title/${title.titleId.toUpperCase()}/online-users/history?hours=24`), [
        { recorded_at: at, online_count: title.online }
      ])
    }
    t.match(
      await get('/api/network-stats/top-games?days=1'),
      [...page.titles]
        .sort((a, b) => b.online - a.online)
        .map(({ titleId, name, online }) => ({ titleId, name, peak: online, average: online }))
    )
  })

  await t.test(
    'the same page again is one more sample, and a page that the server lacks is a failed scrape',
    async (t) => {
      // A sample is of a whole second: within the same one, a second scrape would replace the first.
      const secondOf = (ms: number) => Math.floor(ms / 1000)
      await until(() => secondOf(Date.now()) > secondOf(Date.parse(run?.observedAt ?? '')))
      t.match(await gamenetJson(environment, ['scrape', 'network']), [{ outcome: 'succeeded' }])
      const games = await gamenet(environment, ['scrape', 'games', '--json'])
      t.equal(games.code, 1)
      t.match(JSON.parse(games.stdout), [{ source: 'games', outcome: 'failed', published: 0, reason: /404/ }])
      await service.caughtUp()
      t.match(await get('/api/network-stats/online-24h'), [
        { online_count: page.online },
        { online_count: page.online }
      ])
      t.match(await get('/api/network-stats/activity-summary'), { totalSnapshotCount: 2 })
    }
  )
}

/** A plain file server: the files of a folder, `index.html` at `/`, with the date of the file as validator. */
async function startFileServer(t: Test, directory: string): Promise<string> {
  const server = createServer(async (request, response) => {
    try {
      const file = join(directory, request.url === '/' ? 'index.html' : (request.url ?? ''))
      const modified = (await stat(file)).mtime.toUTCString()
      const isKnown = request.headers['if-modified-since'] === modified
      response.writeHead(isKnown ? 304 : 200, { 'content-type': 'text/html; charset=utf-8', 'last-modified': modified })
      response.end(isKnown ? undefined : await readFile(file))
    } catch {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('not found')
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}`
}

/** Returns the values of a home page, read with plain expressions. */
function pageOf(html: string) {
  const number = (label: string) =>
    Number((new RegExp(`<h3>([\\d,]+)</h3><p>${label}`).exec(html)?.[1] ?? '').replaceAll(',', ''))
  const rows = html.split(/<tr>\s*<td>/).slice(1)
  return {
    registered: number('Registered Users'),
    online: number('Users Online Now'),
    titles: rows.map((row) => {
      const first = (pattern: RegExp) => pattern.exec(row)?.[1] ?? ''
      const lobbies = /(\d+) in (\d+) sessions?</.exec(row)
      return {
        titleId: first(/games\/([0-9a-f]{8})"/),
        name: first(/"[^"]*games\/[0-9a-f]{8}">([^<]+)<\/a>/),
        subtitle: first(/<small[^>]*>([^<]*)<\/small>/),
        image: first(/src="([^"]+)"/),
        online: Number(first(/<td[^>]*>([\d,]+)<\/td>/).replaceAll(',', '')),
        players: Number(lobbies?.[1] ?? 0),
        sessions: Number(lobbies?.[2] ?? 0)
      }
    })
  }
}
