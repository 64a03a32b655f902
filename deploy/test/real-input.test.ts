import { readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { ask, forEach, sameList } from './service/ask.js'
import { type Environment, gamenet, gamenetJson, type Running, startGamenet } from './service/gamenet.js'
import { recordedFile, sharedFile } from './service/recorded.js'

/*
 * Recorded files and a page written to the facts of the real ones go through the whole service; every answer is
 * compared with a plain computation over the raw file that shares no code with the product.
 */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const WIDTHS = [300, 900, 3600, 21_600, 86_400, 604_800]

const Points = z.array(z.strictObject({ recorded_at: z.string(), online_count: z.int() }))
const Days = z.array(
  z.strictObject({
    date: z.string(),
    min_online: z.int(),
    max_online: z.int(),
    avg_online: z.number(),
    samples: z.int(),
    coverage: z.number()
  })
)
const Game = z.object({ titleId: z.string(), releaseDate: z.string() })
const CatalogueTitle = z.object({
  titleId: z.string(),
  name: z.string(),
  title: z.string(),
  publisher: z.string(),
  releaseDate: z.string().nullable()
})
const NetworkGame = z.object({ titleId: z.string(), name: z.string() })

type Hour = { readonly ms: number; readonly online: number | undefined }
type Sample = { readonly ms: number; readonly online: number }
type Fact = { readonly value: string; readonly observedAt: string }
type Described = {
  readonly titleId: string
  readonly name: string
  readonly shownName: string
  readonly title: string
  readonly publisher: string
  readonly releaseDate: string
}

/** Served where the recorded page is absent: to the same facts, with names that have to be encoded. */
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

test('nine years of hourly counts', async (t) => {
  const path = await recordedFile(t, 'online-hourly-2017-2026.csv.gz')
  const hours = hoursOf(gunzipSync(await readFile(path)).toString())
  const samples = hours.flatMap(({ ms, online }) => (online === undefined ? [] : [{ ms, online }]))
  const missing = hours.filter(({ online }) => online === undefined)
  const firstDay = dayOf(hours[0]?.ms ?? 0)
  const endDay = dayOf(hours.at(-1)?.ms ?? 0) + DAY_MS
  const { service, environment } = await startOn(t, await startFileServer(t, t.testdir()))
  const network = `${service.apiUrl}/api/network-stats`
  const command = [
    'import',
    'network-count',
    path,
    '--columns',
    'observedAt=Timestamp,online=Peak Player Count'
  ] as const

  await t.test('the import reads every row', async (t) => {
    const [report] = z.array(z.unknown()).parse(await gamenetJson(environment, command))
    t.match(report, { rowsRead: hours.length, published: samples.length, missing: missing.length, rejected: 0 })
    t.match(report, { rowsRead: 79_506, missing: 221, finished: true, alreadyDone: false, faults: [] })
  })

  await t.test('the samples of the whole history are the rows that are not empty, none else', async (t) => {
    const answer = await ask(`${network}/online-24h?${windowOf(firstDay, endDay)}&resolution=raw`)
    t.equal(answer.headers.get('x-resolution-seconds'), '0')
    const points = Points.parse(answer.body)
    sameList(t, points, samples.map(pointOf), 'every point is a row of the file')
    t.equal(Math.max(...points.map((point) => point.online_count)), 216_762, 'the highest')
    const answered = new Set(points.map((point) => point.recorded_at))
    t.equal(missing.filter(({ ms }) => answered.has(textOf(ms))).length, 0, 'a missing hour is absent')
    const zeros = samples.filter(({ online }) => online === 0)
    t.equal(zeros.length, 111)
    sameList(
      t,
      points.filter((point) => point.online_count === 0),
      zeros.map(pointOf),
      'a written 0 stays'
    )
  })

  await t.test('the days of every year are the days of the file', async (t) => {
    const wanted = daysOf(samples)
    const rows: z.infer<typeof Days> = []
    for (let from = firstDay; from < endDay; from += 365 * DAY_MS) {
      const to = Math.min(endDay, from + 365 * DAY_MS)
      rows.push(...Days.parse((await ask(`${network}/daily-online?${windowOf(from, to)}`)).body))
    }
    sameList(t, rows, wanted, 'every day')
    t.equal(Math.max(...rows.map((row) => row.max_online)), 216_762, 'the highest')
    const answered = new Map(rows.map((row) => [row.date, row]))
    const holed = [...new Set(missing.map(({ ms }) => textOf(ms).slice(0, 10)))]
    const empty = holed.filter((date) => !answered.has(date))
    const allDays = (endDay - firstDay) / DAY_MS
    t.equal(empty.length, 6, 'no row for the days without any sample')
    t.equal(allDays - rows.length, 6, 'and a row for every other day')
    const partial = holed.filter((date) => !empty.includes(date))
    t.ok(partial.length > 0)
    t.same(
      partial.filter((date) => (answered.get(date)?.coverage ?? 1) >= 1),
      [],
      'coverage is below 1 on every day that misses an hour'
    )
    for (const date of empty) {
      const from = Date.parse(date)
      t.same((await ask(`${network}/daily-online?${windowOf(from, from + DAY_MS)}`)).body, [], `${date} has no row`)
      t.same((await ask(`${network}/online-24h?${windowOf(from, from + DAY_MS)}`)).body, [], `${date} has no point`)
    }
  })

  await t.test('a day, a year and nine years can be asked for', async (t) => {
    const at = (date: string) => Date.parse(`${date}T00:00:00Z`)
    const spans: [string, number, number, number][] = [
      ['a day', at('2021-06-19'), at('2021-06-20'), 0],
      ['the day of the highest', dayOf(highest(samples).ms), dayOf(highest(samples).ms) + DAY_MS, 0],
      ['a month', at('2020-02-01'), at('2020-03-01'), 3600],
      ['a year', at('2020-01-01'), at('2021-01-01'), 21_600],
      ['nine years', firstDay, endDay, 604_800],
      ['nine years that begin and end inside of a bucket', firstDay + 7 * HOUR_MS, endDay - 5 * HOUR_MS, 604_800]
    ]
    for (const [name, from, to, width] of spans) {
      const answer = await ask(`${network}/online-24h?${windowOf(from, to)}`)
      t.equal(widthOf(from, to), width)
      t.equal(answer.headers.get('x-resolution-seconds'), String(width), name)
      sameList(t, Points.parse(answer.body), peaksOf(samples, from, to, width), name)
    }
    for (const width of [3600, 86_400]) {
      const answer = await ask(`${network}/online-24h?${windowOf(firstDay, endDay)}&resolution=${width}`)
      sameList(t, Points.parse(answer.body), peaksOf(samples, firstDay, endDay, width), `nine years by ${width} s`)
    }
    t.same((await ask(`${network}/lobbies-24h?${windowOf(firstDay, endDay)}`)).body, [], 'what nobody counted is empty')
    t.same((await ask(`${network}/registered-users?days=365`)).body, [])
  })

  await t.test('a second import publishes nothing and changes no answer', async (t) => {
    const urls = [
      `${network}/online-24h?${windowOf(firstDay, endDay)}&resolution=raw`,
      `${network}/online-24h?${windowOf(firstDay, endDay)}`,
      `${network}/daily-online?${windowOf(firstDay, endDay)}`,
      `${network}/daily-online?${windowOf(Date.parse('2021-06-01'), Date.parse('2021-07-01'))}`
    ]
    const before = await Promise.all(urls.map((url) => ask(url)))
    t.match(await gamenetJson(environment, command), [{ alreadyDone: true, published: 0, rejected: 0 }])
    t.match(await gamenetJson(environment, ['status', '--wait', '180']), { settled: { settled: true } })
    for (const [at, url] of urls.entries()) {
      const etag = before[at]?.headers.get('etag') ?? ''
      t.match(etag, /^(W\/)?"[^"]+"$/)
      const after = await ask(url)
      t.equal(after.headers.get('etag'), etag, 'the same tag')
      t.ok(after.text === before[at]?.text, 'the same body')
      t.equal((await ask(url, { 'if-none-match': etag })).status, 304)
    }
  })
})

test('the network’s own page from a plain file server', async (t) => {
  const shared = await sharedFile('upstream-home-example.html')
  t.comment(shared === undefined ? 'NO ../shared/data, so a page that the test writes is served' : `serving ${shared}`)
  const html = shared === undefined ? WRITTEN_PAGE : await readFile(shared, 'utf8')
  const page = pageOf(html)
  const directory = t.testdir({ index: { 'index.html': html } })
  const upstream = await startFileServer(t, join(directory, 'index'))
  const { service, environment } = await startOn(t, upstream)
  const get = async (path: string) => (await ask(`${service.apiUrl}${path}`)).body
  const [run] = z
    .array(z.object({ outcome: z.string(), observedAt: z.string() }))
    .parse(await gamenetJson(environment, ['scrape', 'network']))
  t.equal(run?.outcome, 'succeeded')
  t.match(await gamenetJson(environment, ['status', '--wait', '180']), { settled: { settled: true } })
  const at = (run?.observedAt ?? '').slice(0, 19).replace('T', ' ')
  const sessions = page.titles.reduce((sum, title) => sum + title.sessions, 0)
  const shown = new Map(page.titles.map((title) => [title.name, title]))

  await t.test('its counts are the network’s', async (t) => {
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

  await t.test('its table is the titles, their facts and their counts', async (t) => {
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
      t.match(await gamenetJson(environment, ['scrape', 'network']), [{ outcome: 'succeeded' }])
      const games = await gamenet(environment, ['scrape', 'games', '--json'])
      t.equal(games.code, 1)
      t.match(JSON.parse(games.stdout), [{ source: 'games', outcome: 'failed', published: 0, reason: /404/ }])
      await gamenetJson(environment, ['status', '--wait', '180'])
      t.match(await get('/api/network-stats/online-24h'), [
        { online_count: page.online },
        { online_count: page.online }
      ])
      t.match(await get('/api/network-stats/activity-summary'), { totalSnapshotCount: 2 })
    }
  )
})

test('a catalogue of titles and a list of games with other names', async (t) => {
  const directory = t.testdir()
  const path = await recordedFile(t, 'titles.jsonl.gz')
  const catalogue = gunzipSync(await readFile(path))
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => CatalogueTitle.parse(JSON.parse(line)))
  const { service, environment } = await startOn(t, await startFileServer(t, directory))
  const importTitles = async (file: string, observedAt: string) =>
    z
      .array(z.unknown())
      .parse(await gamenetJson(environment, ['import', 'title', file, '--set', `observedAt=${observedAt}`]))[0]
  const facts = new Map<string, Map<string, Fact>>()

  await t.test('every title of the catalogue is found by id and by name', async (t) => {
    t.match(await importTitles(path, '2026-07-19T00:00:00Z'), { published: 1162, rejected: 0, ignoredColumns: [] })
    for (const title of catalogue) learn(facts, '2026-07-19', title)
    const names = countBy(catalogue.map((title) => keyOf(title.name)))
    const shared = [...names.values()].filter((count) => count > 1)
    t.equal(shared.length, 89, 'names that are shared')
    t.equal(
      shared.reduce((sum, count) => sum + count, 0),
      189,
      'by as many titles'
    )
    await findsEveryTitle(t, service, described(facts), { byId: true })
    const dateless = catalogue.filter((title) => title.releaseDate === null)
    t.equal(dateless.length, 328)
    const dates = new Set<unknown>()
    await forEach(dateless, 16, async ({ titleId }) => {
      dates.add(Game.parse((await ask(`${service.apiUrl}/api/game/${titleId}`)).body).releaseDate)
    })
    t.same([...dates], [''], 'a null date is ""')
  })

  await t.test('a later list wins in the fields that it has', async (t) => {
    const games = await networkGames(t, catalogue, directory)
    t.match(await importTitles(games.path, '2026-07-20T00:00:00Z'), { published: games.titles.length, rejected: 0 })
    const before = new Map(catalogue.map((title) => [title.titleId, title.name]))
    const renamed = games.titles.filter(({ titleId, name }) => before.has(titleId) && before.get(titleId) !== name)
    t.equal(renamed.length, 57)
    t.match(games.titles.map(({ name }) => name).join(), /\/.*#|#.*\//s, 'names with a slash and a hash are among them')
    for (const title of games.titles) learn(facts, '2026-07-20', title)
    const titles = described(facts)
    await findsEveryTitle(t, service, titles, { byId: true })
    const known = new Set(titles.map((title) => keyOf(title.shownName)))
    const gone = renamed.map(({ titleId }) => before.get(titleId) ?? '').filter((name) => !known.has(keyOf(name)))
    t.ok(gone.length > 0)
    const found = new Set<number>()
    await forEach(gone, 8, async (name) => {
      found.add((await ask(`${service.apiUrl}/api/game/${encodeURIComponent(name)}`)).status)
    })
    t.same([...found], [404], 'the name of before names nothing')
  })

  await t.test('an earlier list, imported last, gives only what was not known', async (t) => {
    const older = catalogue.map(({ titleId, name }) => ({
      titleId,
      name: `${name} (older)`,
      publisher: 'Older',
      releaseDate: '2001-01-01'
    }))
    const file = join(directory, 'older.jsonl')
    await writeFile(file, older.map((title) => JSON.stringify(title)).join('\n'))
    t.match(await importTitles(file, '2026-07-18T00:00:00Z'), { published: older.length })
    for (const title of older) learn(facts, '2026-07-18', title)
    const titles = described(facts)
    t.equal(titles.filter((title) => title.releaseDate === '2001-01-01').length >= 328, true)
    t.same(
      titles.filter((title) => title.name.endsWith('(older)')),
      []
    )
    await findsEveryTitle(t, service, titles, { byId: false })
  })

  await t.test('of the titles of one name, that with the newest count has it bare', async (t) => {
    const groups = groupsOf(described(facts))
    const counted = groups.map((ids) => ids.at(-1) ?? '')
    const file = join(directory, 'counts.csv')
    await writeFile(
      file,
      ['titleId,observedAt,online', ...counted.map((id) => `${id},2026-07-20 12:00:00,3`)].join('\n')
    )
    t.match(await gamenetJson(environment, ['import', 'title-count', file]), [{ published: groups.length }])
    const titles = described(facts, new Set(counted))
    t.equal(
      titles.filter((title) => counted.includes(title.titleId) && title.shownName === title.name).length,
      counted.length
    )
    await findsEveryTitle(t, service, titles, { byId: false })
  })
})

/** A plain file server: what stands in a folder, `index.html` at `/`, with the date of the file as validator. */
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

async function startOn(t: Test, upstreamUrl: string): Promise<{ service: Running; environment: Environment }> {
  const environment = {
    DATA_DIR: join(t.testdirName, 'data'),
    UPSTREAM_URL: upstreamUrl,
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0'
  }
  const service = await startGamenet(environment)
  t.teardown(() => service.kill())
  return { service, environment }
}

/** The rows of the hourly file; an empty cell is undefined. */
function hoursOf(csv: string): Hour[] {
  const [, ...lines] = csv.trimEnd().split(/\r?\n/)
  return lines.map((line) => {
    const [time = '', online = ''] = line.split(',')
    return { ms: Date.parse(`${time.replace(' ', 'T')}Z`), online: online === '' ? undefined : Number(online) }
  })
}

function dayOf(ms: number): number {
  return ms - (ms % DAY_MS)
}

function textOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}

function pointOf({ ms, online }: Sample): z.infer<typeof Points>[number] {
  return { recorded_at: textOf(ms), online_count: online }
}

function windowOf(fromMs: number, toMs: number): string {
  return `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`
}

function highest(samples: readonly Sample[]): Sample {
  return samples.reduce((best, sample) => (sample.online > best.online ? sample : best))
}

/** One row a day that has a sample: the mean to one decimal and the share of 24 hours to three, halves up. */
function daysOf(samples: readonly Sample[]): z.infer<typeof Days> {
  const days = new Map<string, number[]>()
  for (const { ms, online } of samples) {
    const date = textOf(ms).slice(0, 10)
    days.set(date, [...(days.get(date) ?? []), online])
  }
  return [...days].map(([date, counts]) => {
    const total = counts.reduce((sum, count) => sum + count, 0)
    return {
      date,
      min_online: Math.min(...counts),
      max_online: Math.max(...counts),
      avg_online: Math.floor((total * 20 + counts.length) / (2 * counts.length)) / 10,
      samples: counts.length,
      coverage: Math.floor((counts.length * 2000 + 24) / 48) / 1000
    }
  })
}

/** The width that a window gets by itself: samples up to a day, then the finest with at most 2,000 buckets. */
function widthOf(fromMs: number, toMs: number): number {
  if (toMs - fromMs <= DAY_MS) return 0
  const buckets = (width: number) => Math.ceil(toMs / width / 1000) - Math.floor(fromMs / width / 1000)
  return WIDTHS.find((width) => buckets(width) <= 2000) ?? 604_800
}

function peaksOf(samples: readonly Sample[], fromMs: number, toMs: number, width: number): z.infer<typeof Points> {
  const within = samples.filter(({ ms }) => ms >= fromMs && ms < toMs)
  if (width === 0) return within.map(pointOf)
  const peaks = new Map<number, number>()
  for (const { ms, online } of within) {
    const bucket = ms - (ms % (width * 1000))
    peaks.set(bucket, Math.max(online, peaks.get(bucket) ?? 0))
  }
  return [...peaks].map(([ms, online]) => pointOf({ ms, online }))
}

/** What a home page says, read with plain expressions. */
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

/** The recorded list of games; without it one of the same make: 192 known ids of which 57 have other names, and 7 new ones. */
async function networkGames(t: Test, catalogue: readonly z.infer<typeof CatalogueTitle>[], directory: string) {
  const recorded = await sharedFile('network-games.json')
  if (recorded !== undefined) {
    return { path: recorded, titles: z.array(NetworkGame).parse(JSON.parse(await readFile(recorded, 'utf8'))) }
  }
  t.comment('NO ../shared/data: a list of games of the same make is read')
  const known = catalogue.filter((_title, at) => at % 6 === 0).slice(0, 192)
  const titles = known.map(({ titleId, name }, at) => ({
    titleId,
    name: at < 57 ? `${name} / #${at} & it's: +` : name
  }))
  for (let at = 0; at < 7; at += 1) titles.push({ titleId: `fffe000${at}`, name: `New game ${at} / #1` })
  const path = join(directory, 'network-games.json')
  await writeFile(path, JSON.stringify(titles, null, 1))
  return { path, titles }
}

/** Takes over every field that is given and not older than what is known. */
function learn(
  facts: Map<string, Map<string, Fact>>,
  observedAt: string,
  { titleId, ...fields }: { titleId: string } & Readonly<Record<string, string | null>>
): void {
  const known = facts.get(titleId) ?? new Map<string, Fact>()
  facts.set(titleId, known)
  for (const [field, value] of Object.entries(fields)) {
    if (value === null || value === '' || (known.get(field)?.observedAt ?? '') > observedAt) continue
    known.set(field, { value, observedAt })
  }
}

/** Every title as it has to be shown; of one name the counted title, else that of the lowest id, has it bare. */
function described(
  facts: ReadonlyMap<string, ReadonlyMap<string, Fact>>,
  counted: ReadonlySet<string> = new Set()
): Described[] {
  const ids = [...facts.keys()].sort((a, b) => Number(counted.has(b)) - Number(counted.has(a)) || (a < b ? -1 : 1))
  const taken = new Set<string>()
  return ids.map((titleId) => {
    const factOf = (field: string) => facts.get(titleId)?.get(field)?.value ?? ''
    const name = factOf('name')
    const isBare = !taken.has(keyOf(name))
    taken.add(keyOf(name))
    return {
      titleId,
      name,
      shownName: isBare ? name : `${name} [${titleId}]`,
      title: factOf('title'),
      publisher: factOf('publisher'),
      releaseDate: factOf('releaseDate')
    }
  })
}

/** For every name that several titles share, their ids in order. */
function groupsOf(titles: readonly Described[]): string[][] {
  const groups = new Map<string, string[]>()
  for (const { titleId, name } of titles) groups.set(keyOf(name), [...(groups.get(keyOf(name)) ?? []), titleId])
  return [...groups.values()].filter((ids) => ids.length > 1).map((ids) => ids.sort())
}

/** Asks for every title by the name it is shown as, in another case, and by its id in both cases; and for the list. */
async function findsEveryTitle(
  t: Test,
  service: Running,
  titles: readonly Described[],
  options: { byId: boolean }
): Promise<void> {
  const wrong: unknown[] = []
  let asked = 0
  await forEach(titles, 16, async ({ shownName, ...title }) => {
    const wanted = JSON.stringify(Object.entries({ ...title, image: '' }).sort())
    const byId = [title.titleId, title.titleId.toUpperCase()]
    for (const key of [otherCase(shownName), ...(options.byId ? byId : [])]) {
      const { status, body } = await ask(`${service.apiUrl}/api/game/${encodeURIComponent(key)}`)
      asked += 1
      const found = JSON.stringify(Object.entries(z.record(z.string(), z.unknown()).parse(body)).sort())
      if (status !== 200 || found !== wanted) wrong.push({ key, status, body, wanted: title })
    }
  })
  t.same(wrong.slice(0, 3), [], `${asked} questions for ${titles.length} titles, ${wrong.length} answered wrongly`)
  const collator = new Intl.Collator('en')
  const names = titles.map((title) => title.shownName)
  sameList(
    t,
    z.array(z.string()).parse((await ask(`${service.apiUrl}/api/games`)).body),
    names.sort((a, b) => collator.compare(a, b) || Buffer.compare(Buffer.from(a), Buffer.from(b))),
    'the list of names'
  )
}

/** The name with every letter in its other case. */
function otherCase(name: string): string {
  return Array.from(name, (letter) => {
    const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
    return other.length === letter.length ? other : letter
  }).join('')
}

function keyOf(name: string): string {
  return name.normalize('NFKC').toLowerCase()
}

function countBy(keys: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}
