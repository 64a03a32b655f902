import { deepEqual } from 'node:assert/strict'
import { connect } from 'node:net'
import { load } from 'cheerio'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { request } from 'undici'
import { boardRowsAt } from '../demo/network/boards.js'
import { homePage } from '../demo/network/pages.js'
import { type DemoNetworkOptions, type Shown, startDemoNetwork } from '../demo/network/server.js'
import { createWorld, type World } from '../demo/network/world.js'

const NOON = Date.UTC(2026, 10, 21, 12)
const world = createWorld(7)

test('a home page shows exactly the counts of the world, at any instant', async () => {
  fc.assert(
    fc.property(fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2030, 0, 1) }), (ms) => {
      deepEqual(readHomePage(homePage(world, ms, 'http://127.0.0.1:1')), countsOf(world, ms))
    }),
    { numRuns: 15 }
  )
})

test('the home page is served for the clock, with names, ids, icons and pictures that load', async (t) => {
  const network = await started(t)
  const $ = load(await textOf(`${network.url}/`))
  t.same(readHomePage($.html()), countsOf(world, NOON))
  const rows = $('#games table tbody tr').toArray()
  t.equal(rows.length, 200)
  for (const [index, row] of rows.entries()) {
    const title = world.titles[index]
    t.equal($(row).find('a').last().text(), title?.name)
    t.equal($(row).find('a').last().attr('href'), `${network.url}/games/${title?.titleId}`)
    t.equal($(row).find('small').first().text(), title?.subtitle)
    t.equal($(row).find('small').last().text(), title?.titleId.toUpperCase())
    const icons = $(row).find('i').toArray()
    t.same(
      icons.map((icon) => !$(icon).hasClass('invisible')),
      title?.features
    )
  }
  const sources = rows.slice(0, 2).map((row) => $(row).find('img').attr('src') ?? '')
  t.match(sources[0], /^http:/, 'some addresses are absolute')
  t.match(sources[1], /^\/img\//, 'some are relative')
  for (const source of sources) {
    const picture = await request(new URL(source, network.url))
    t.equal(picture.statusCode, 200)
    t.equal(picture.headers['content-type'], 'image/svg+xml')
    t.match(await picture.body.text(), /<svg /)
  }
})

test('the games page lists the same titles', async (t) => {
  const network = await started(t)
  const $ = load(await textOf(`${network.url}/games`))
  t.same(
    $('table tbody tr')
      .toArray()
      .map((row) => [$(row).find('a').last().text(), $(row).find('small').last().text().toLowerCase()]),
    world.titles.map((title) => [title.name, title.titleId])
  )
})

test('a title has its matches on its page, by id in any case and by product code', async (t) => {
  const network = await started(t)
  const title = world.titles.find(({ titleId }) => titleId === '4d53004b')
  if (title === undefined) throw new Error('the favourites have no 4d53004b')
  const matches = world
    .matchesAt(title, NOON)
    .map((match) => [match.hostName, `${match.currentPlayers}/${match.maxPlayers}`])
  t.ok(matches.length > 0)
  for (const name of ['4d53004b', '4D53004B', 'MS-075', 'ms-075']) {
    const $ = load(await textOf(`${network.url}/games/${name}`))
    const rows = $('table.table-striped').first().find('tbody tr').toArray()
    t.same(
      rows.map((row) => [$(row).find('td').first().text(), $(row).find('td.text-right').text()]),
      matches
    )
  }
})

test('a title without matches still has its table', async (t) => {
  const title = world.networkAt(NOON).titles.find(({ lobbies }) => lobbies === 0)?.title
  const network = await started(t)
  const $ = load(await textOf(`${network.url}/games/${title?.titleId}`))
  t.equal($('table.table-striped').length, 1)
  t.equal($('table.table-striped tbody tr').length, 0)
})

test('every form of board is shown with its columns and rows', async (t) => {
  const network = await started(t)
  for (const [form, columns] of [
    ['score', 3],
    ['raw-time', 3],
    ['time', 3],
    ['lap', 7],
    ['career', 8]
  ] as const) {
    const board = world.titles.flatMap((title) => world.boardsAt(title, NOON)).find((board) => board.form === form)
    if (board === undefined) throw new Error(`no board has the form ${form}`)
    const $ = load(await textOf(`${network.url}/games/${board.title.titleId}?leaderboard=${board.leaderboardId}`))
    t.same(choicesOf($), listed(board.title))
    t.equal($('select#leaderboard-select option[selected]').attr('value'), String(board.leaderboardId))
    const rows = $('select#leaderboard-select ~ table.table-striped tbody tr').toArray()
    const cells = rows.map((row) =>
      $(row)
        .find('td')
        .toArray()
        .map((cell) => $(cell).text())
    )
    t.ok(cells.length > 0 && cells.every((row) => row.length === columns), `${form} has ${columns} columns`)
    t.same(
      cells,
      boardRowsAt(world.seed, board, NOON).map((row) => [String(row.rank), row.playerName, ...row.cells])
    )
  }
})

test('the list of boards begins with an empty option in most titles, and has the boards of the instant', async (t) => {
  let ms = NOON
  const network = await started(t, { now: () => ms })
  const withBoards = world.titles.filter((title) => world.boardsOf(title).length > 0)
  const placeholders = new Set<boolean>()
  for (const title of withBoards.slice(0, 8)) {
    const $ = load(await textOf(`${network.url}/games/${title.titleId}`))
    placeholders.add($('select#leaderboard-select option').first().attr('value') === '')
    t.same(choicesOf($), listed(title))
    t.equal($('table.table-striped').length, 1, 'no board is shown where none is chosen')
  }
  t.equal(placeholders.size, 2, 'some begin with a board')
  const event = withBoards.flatMap((title) => world.boardsOf(title)).find(({ eventMs }) => eventMs !== undefined)
  if (event === undefined) throw new Error('no board is an event')
  const statuses = new Set<number>()
  for (let step = 0; step < 10; step += 1) {
    ms += (event.eventMs ?? 0) / 10
    const shownMs = network.instantShown()
    const isListed = world.boardsAt(event.title, shownMs).includes(event)
    const $ = load(await textOf(`${network.url}/games/${event.title.titleId}`))
    t.equal(
      choicesOf($).some(([id]) => id === String(event.leaderboardId)),
      isListed
    )
    const asked = await dumped(`${network.url}/games/${event.title.titleId}?leaderboard=${event.leaderboardId}`, {})
    t.equal(asked.statusCode, isListed ? 200 : 404)
    statuses.add(asked.statusCode)
  }
  t.equal(statuses.size, 2, 'the event was there and was not')
})

test('tables of matches differ by title: other headers, and a column between host and players', async (t) => {
  const network = await started(t)
  const heads = new Set<string>()
  for (const title of world.titles.slice(0, 30)) {
    const $ = load(await textOf(`${network.url}/games/${title.titleId}`))
    const table = $('table.table-striped').first()
    const head = table
      .find('th')
      .toArray()
      .map((cell) => $(cell).text())
    heads.add(head.join())
    t.ok(
      table
        .find('tbody tr')
        .toArray()
        .every((row) => $(row).find('td').length === head.length)
    )
  }
  t.same([...heads].sort(), ['Host,Mode,Players', 'Host,Players', 'Server,Mode,Players', 'Server,Players'])
})

test('a requested board is sent, and not again to a client that has it', async (t) => {
  const shown: Shown[] = []
  const network = await started(t, { onShown: (one) => shown.push(one) })
  const board = world.titles.flatMap((title) => world.boardsAt(title, NOON))[3]
  const path = `/games/${board?.title.titleId}`
  const first = await dumped(`${network.url}${path}?leaderboard=${board?.leaderboardId}`, {})
  const etag = String(first.headers.etag)
  const again = await dumped(`${network.url}${path}?leaderboard=${board?.leaderboardId}`, { 'if-none-match': etag })
  const other = await dumped(`${network.url}${path}`, { 'if-none-match': etag })
  t.same([again.statusCode, other.statusCode], [304, 200])
  const expected = { path, instant: '2026-11-21T12:00:00Z' }
  t.same(shown, [
    { ...expected, leaderboardId: board?.leaderboardId, status: 200 },
    { ...expected, leaderboardId: board?.leaderboardId, status: 304 },
    { ...expected, status: 200 }
  ])
})

test('the boards of a title and the number of people can be configured', async (t) => {
  const names = Array.from({ length: 494 }, (_, n) => ({ leaderboardId: 2 * n, name: `Board ${n} <&> "${n}"` }))
  const given = createWorld(7, { boards: { '4d53004b': names }, crowd: 0.01 })
  const network = await started(t, { world: given })
  const $ = load(await textOf(`${network.url}/games/4d53004b?leaderboard=986`))
  t.same(
    choicesOf($),
    names.map(({ leaderboardId, name }) => [String(leaderboardId), name])
  )
  t.ok($('select#leaderboard-select ~ table.table-striped tbody tr').length > 0)
  const share = given.networkAt(NOON).online / world.networkAt(NOON).online
  t.ok(share > 0.005 && share < 0.015, `${share}`)
})

test('the players page shows the state of every user', async (t) => {
  const network = await started(t)
  const $ = load(await textOf(`${network.url}/players`))
  const sightings = world.sightingsAt(NOON)
  const rows = $('table tbody tr').toArray()
  t.equal(rows.length, sightings.length)
  for (const [user, row] of rows.entries()) {
    const [gamertag, username, status] = $(row)
      .find('td')
      .toArray()
      .map((cell) => $(cell).text())
    const { playing, ...names } = sightings[user] ?? {}
    t.match(names, { gamertag, username })
    if (playing === undefined) t.match(status, /^Last seen \d+ (minute|hour|day)s? ago$/)
    else t.ok(status?.startsWith(`Online in ${playing.title.name} for `), String(status))
  }
})

test('an unknown page is 404', async (t) => {
  const network = await started(t)
  for (const path of [
    '/nothing',
    '/games/00000000',
    '/games/%00',
    '/games/4d53004b?leaderboard=99999',
    '/img/none.svg'
  ]) {
    const answer = await request(`${network.url}${path}`)
    t.equal(answer.statusCode, 404, path)
    await answer.body.dump()
  }
})

test('a page stays unchanged for five seconds, and is not sent again to a client that has it', async (t) => {
  let ms = NOON
  const network = await started(t, { now: () => ms })
  const first = await request(`${network.url}/`)
  const { etag, 'last-modified': modified } = first.headers
  const body = await first.body.text()
  ms += 4999
  const again = await request(`${network.url}/`, { headers: { 'if-none-match': `"x", ${etag}` } })
  t.equal(again.statusCode, 304)
  t.equal(await again.body.text(), '')
  t.equal((await dumped(`${network.url}/`, { 'if-modified-since': String(modified) })).statusCode, 304)
  t.equal(await textOf(`${network.url}/`), body)
  ms += 60_001
  const moved = await request(`${network.url}/`, { headers: { 'if-none-match': String(etag) } })
  t.equal(moved.statusCode, 200)
  t.not(await moved.body.text(), body)
  t.equal((await dumped(`${network.url}/`, { 'if-modified-since': String(modified) })).statusCode, 200)
  t.equal((await dumped(`${network.url}/games`, {})).statusCode, 200)
})

test('each answer is reported with its instant, and its page can be rendered again from seed and instant', async (t) => {
  const shown: Shown[] = []
  let ms = NOON + 1234
  const network = await started(t, { now: () => ms, speed: 60, onShown: (one) => shown.push(one) })
  const pages: string[] = []
  for (let minute = 0; minute < 3; minute += 1) {
    pages.push(await textOf(`${network.url}/`))
    ms += 60_000
  }
  t.equal(shown.length, 3)
  for (const [index, { instant }] of shown.entries()) {
    t.equal(homePage(createWorld(7), Date.parse(instant), network.url), pages[index])
  }
  t.equal(
    Date.parse(shown[2]?.instant ?? '') - Date.parse(shown[0]?.instant ?? ''),
    2 * 60 * 60_000,
    '60 times as fast'
  )
})

test('faults: an error, a page cut in a tag, a connection cut in the page, a reset', async (t) => {
  const network = await started(t)
  const whole = await textOf(`${network.url}/`)
  t.equal((await dumped(`${network.url}/?fault=500`, {})).statusCode, 500)
  const broken = await request(`${network.url}/?fault=broken`)
  t.equal(broken.statusCode, 200)
  const cut = await broken.body.text()
  t.ok(whole.startsWith(cut) && cut.length < whole.length && /<.$/.test(cut))
  const truncated = await request(`${network.url}/?fault=truncated`)
  t.equal(Number(truncated.headers['content-length']), Buffer.byteLength(whole))
  await t.rejects(truncated.body.text())
  await t.rejects(request(`${network.url}/?fault=reset`))
  t.equal(await textOf(`${network.url}/`), whole, 'the next answer is whole again')
})

test('a slow answer is complete at its end', async (t) => {
  const network = await started(t, { slowMs: 50 })
  t.equal(await textOf(`${network.url}/games?fault=slow`), await textOf(`${network.url}/games`))
})

test('an ordered fault applies only to the next answers of its path', async (t) => {
  const network = await started(t)
  const order = (body: unknown) =>
    request(`${network.url}/_faults`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
  const statusOf = async (path: string) => (await dumped(`${network.url}${path}`, {})).statusCode
  const ordered = await order({ path: '/', fault: '500', count: 2 })
  t.equal(ordered.statusCode, 204)
  t.same(await (await request(`${network.url}/_faults`)).body.json(), [{ path: '/', fault: '500', count: 2 }])
  t.same(
    [await statusOf('/games'), await statusOf('/'), await statusOf('/'), await statusOf('/')],
    [200, 500, 500, 200]
  )
  network.orderFault({ path: '/games', fault: '500', count: 5 })
  network.orderFault({ path: '/games', fault: '500', count: 0 })
  t.equal(await statusOf('/games'), 200)
  for (const wrong of [
    { path: '/', fault: 'none' },
    { path: 'x', fault: '500' },
    { path: '/', fault: '500', count: -1 }
  ]) {
    const refused = await order(wrong)
    t.equal(refused.statusCode, 400)
    t.match(await refused.body.json(), { error: /\w/ })
  }
})

test('closing ends answers that hang and answers that are slow', async (t) => {
  const network = await started(t, { slowMs: 600_000 })
  const hanging = connect(Number(new URL(network.url).port), '127.0.0.1')
  const ended = new Promise((resolve) => hanging.once('close', resolve))
  hanging.on('error', () => {})
  hanging.write('GET /?fault=hang HTTP/1.1\r\nHost: x\r\n\r\n')
  const slow = await request(`${network.url}/?fault=slow`)
  const slowEnd = slow.body.text().then(
    () => 'whole',
    () => 'cut'
  )
  await network.close()
  await ended
  t.equal(await slowEnd, 'cut')
})

async function started(t: Test, options: Partial<DemoNetworkOptions> = {}) {
  const network = await startDemoNetwork({ seed: 7, world, now: () => NOON, ...options })
  t.teardown(() => network.close())
  return network
}

function choicesOf($: ReturnType<typeof load>): (string | undefined)[][] {
  const options = $('select#leaderboard-select option').toArray()
  return options.map((option) => [$(option).attr('value'), $(option).text()]).filter(([value]) => value !== '')
}

function listed(title: World['titles'][number]): string[][] {
  return world.boardsAt(title, NOON).map(({ leaderboardId, name }) => [String(leaderboardId), name])
}

async function textOf(address: string): Promise<string> {
  const answer = await request(address)
  if (answer.statusCode !== 200) throw new Error(`${address} answered ${answer.statusCode}`)
  return answer.body.text()
}

async function dumped(address: string, headers: Record<string, string>) {
  const answer = await request(address, { headers })
  await answer.body.dump()
  return answer
}

function readHomePage(html: string) {
  const $ = load(html)
  const numberOver = (label: string) => {
    const box = $('section#connect .row div').filter((_, div) => $(div).find('p').text() === label)
    return Number(box.find('h3').text().replaceAll(',', ''))
  }
  const titles = $('#games table tbody tr')
    .toArray()
    .map((row) => {
      const cells = $(row).find('td')
      const [, players = '0', lobbies = '0'] = /^(\d+) in (\d+) sessions?$/.exec(cells.eq(3).text()) ?? []
      if (players === '0' && cells.eq(3).text() !== '-') throw new Error(`the lobbies are "${cells.eq(3).text()}"`)
      return [cells.eq(1).find('small').text(), cells.eq(2).text(), players, lobbies].join(' ')
    })
  return {
    registered: numberOver('Registered Users'),
    supported: numberOver('Games Supported'),
    online: numberOver('Users Online Now'),
    titles
  }
}

function countsOf(of: World, ms: number) {
  const state = of.networkAt(ms)
  return {
    registered: state.registered,
    supported: 200,
    online: state.online,
    titles: state.titles.map(({ title, online, lobbyPlayers, lobbies }) =>
      [title.titleId.toUpperCase(), online, lobbyPlayers, lobbies].join(' ')
    )
  }
}
