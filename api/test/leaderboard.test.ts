import { test } from 'tap'
import {
  type BoardApi,
  type EntryNow,
  NOW_MS,
  openBoardApi,
  storeDescriptions,
  storeEntries,
  storeTitles
} from './board-api.js'

const HALO = '4d530001'
const HOUR_MS = 3_600_000
const entry = (playerName: string, rank: number, place: number, rating: string, more: Partial<EntryNow> = {}) => ({
  playerName,
  rank,
  place,
  rating,
  timeMs: null,
  ...more
})

async function storeTwoBoards({ model, changed }: BoardApi): Promise<void> {
  await storeTitles(model, { [HALO]: "Halo / #1 & 'more' + 100 %" })
  await storeDescriptions(model, [
    [HALO, 7, NOW_MS - 2 * HOUR_MS, 'Old name', true],
    [HALO, 7, NOW_MS - HOUR_MS, 'Best <b>laps</b>', true],
    [HALO, 3, NOW_MS - 2 * HOUR_MS, 'Slayer', true],
    [HALO, 5, NOW_MS - 2 * HOUR_MS, 'Gone', true],
    [HALO, 5, NOW_MS - HOUR_MS, 'Gone', false]
  ])
  await storeEntries(model, [HALO, 7], [entry('old', 9, 9, 'x')], 1)
  await storeEntries(
    model,
    [HALO, 7],
    [
      entry('ann', 1, 0, '01:02.345', { timeMs: 62_345 }),
      entry('ANN', 1, 1, '2147421302', { timeMs: 62_345 }),
      entry('مرحبا <i>', 3, 2, '00:00.000', { timeMs: 0, details: '{"car":"GT & co","date":"1/2/2005"}' }),
      entry('ann', 4, 3, 'text', { occurrence: 2 }),
      entry('old', 0, 0, 'x', { isGone: true })
    ],
    2
  )
  await storeEntries(model, [HALO, 3], [entry('bob', 1, 0, '9,007,199,254,740,993'), entry('eve', 2, 1, '-5')])
  await storeEntries(model, [HALO, 5], [entry('zoe', 1, 0, '12')])
  await changed('title', 'leaderboard', 'leaderboard-entry')
}

test('a board shows its entries in its own order, raw text, times, ties, details', async (t) => {
  const api = await openBoardApi(t)
  await storeTwoBoards(api)
  const answer = await api.get(`/api/game/${HALO.toUpperCase()}/leaderboards/7`)
  t.equal(answer.headers.link, undefined)
  t.same(answer.json(), {
    titleId: HALO,
    gameName: "Halo / #1 & 'more' + 100 %",
    leaderboardId: '7',
    name: 'Best <b>laps</b>',
    listed: true,
    total: 4,
    entries: [
      { rank: '1', name: 'ann', rating: '01:02.345', timeMs: 62_345, timeFormatted: '1:02.345', isTime: true },
      { rank: '1', name: 'ANN', rating: '2147421302', timeMs: 62_345, timeFormatted: '1:02.345', isTime: true },
      {
        rank: '3',
        name: 'مرحبا <i>',
        rating: '00:00.000',
        timeMs: 0,
        timeFormatted: '0:00.000',
        isTime: true,
        details: { car: 'GT & co', date: '1/2/2005' }
      },
      { rank: '4', name: 'ann', rating: 'text', timeMs: 0, timeFormatted: '', isTime: false }
    ]
  })
  const byName = await api.get(`/api/game/${encodeURIComponent("HALO / #1 & 'MORE' + 100 %")}/leaderboards/7`)
  t.same(byName.json(), answer.json(), 'the name in any case is as good as the id')
})

test('limit and offset divide a board into linked pages, and a page beyond the end has the total', async (t) => {
  const api = await openBoardApi(t)
  await storeTwoBoards(api)
  const names: string[] = []
  let url: string | undefined = `/api/game/${HALO}/leaderboards/7?limit=3`
  for (let pages = 0; url !== undefined && pages < 5; pages += 1) {
    const answer = await api.get(url)
    t.equal(answer.json().total, 4)
    names.push(...answer.json().entries.map(({ name }: { name: string }) => name))
    url = /^<(.*)>; rel="next"$/.exec(String(answer.headers.link))?.[1]
  }
  t.same(names, ['ann', 'ANN', 'مرحبا <i>', 'ann'])
  const beyond = await api.get(`/api/game/${HALO}/leaderboards/7?offset=400`)
  t.match(beyond.json(), { total: 4, entries: [] })
  t.equal(beyond.headers.link, undefined)
})

test('a board of more than 10,000 entries answers with the first 10,000 and a link to the rest', async (t) => {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { [HALO]: 'Halo' })
  const many = Array.from({ length: 10_003 }, (_, n) => entry(`player ${n}`, n + 1, n, String(n)))
  await storeEntries(api.model, [HALO, 1], many)
  await api.changed('title', 'leaderboard-entry')
  const first = await api.get(`/api/game/${HALO}/leaderboards/1`)
  t.match([first.json().total, first.json().entries.length], [10_003, 10_000])
  const link = /^<(.*)>; rel="next"$/.exec(String(first.headers.link))?.[1] ?? ''
  const rest = await api.get(link)
  t.same(
    rest.json().entries.map(({ name }: { name: string }) => name),
    ['player 10000', 'player 10001', 'player 10002']
  )
})

test('the boards of a game are those that it lists now, by id; the others can still be requested', async (t) => {
  const api = await openBoardApi(t)
  await storeTwoBoards(api)
  const gameName = "Halo / #1 & 'more' + 100 %"
  t.same((await api.get(`/api/game/${HALO}/leaderboards`)).json(), [
    { id: 3, name: 'Slayer', titleId: HALO, gameName },
    { id: 7, name: 'Best <b>laps</b>', titleId: HALO, gameName }
  ])
  t.same((await api.get(`/api/game/${HALO}/leaderboard-summary`)).json(), {
    titleId: HALO,
    gameName,
    leaderboard_count: 2,
    total_entries: 6,
    time_entries: 3,
    score_entries: 3
  })
  t.match((await api.get(`/api/game/${HALO}/leaderboards/5`)).json(), { name: 'Gone', listed: false, total: 1 })
})

test('a title and a board known only from entries are found, with an id for a name and no name', async (t) => {
  const api = await openBoardApi(t)
  const id = '0000beef'
  t.equal((await api.get(`/api/game/${id}/leaderboards`)).statusCode, 404)
  await storeEntries(api.model, [id, 0], [entry('ann', 1, 0, '12')])
  await api.model.insert('record_history', ['title_id', 'leaderboard_id', 'version'], [[id, 0, 1]])
  await api.changed('leaderboard-entry')
  t.same((await api.get(`/api/game/${id}/leaderboards`)).json(), [], 'nothing is listed')
  t.match((await api.get(`/api/game/${id}/leaderboards/0`)).json(), { gameName: id, name: '', listed: false, total: 1 })
  t.match((await api.get(`/api/game/${id}/leaderboard-summary`)).json(), { gameName: id, leaderboard_count: 0 })
  t.equal((await api.get(`/api/game/${id}`)).statusCode, 404, 'it is not described')
})

test('unknown titles and boards are 404 with a sentence that names them', async (t) => {
  const api = await openBoardApi(t)
  await storeTwoBoards(api)
  for (const [url, sentence] of [
    ['/api/game/nobody/leaderboards', /^No game "nobody" is known\.$/],
    ['/api/game/4d53ffff/leaderboards/1', /^No game "4d53ffff" is known\.$/],
    ['/api/game/nobody/leaderboard-summary', /nobody/],
    [`/api/game/${HALO}/leaderboards/99`, /^No leaderboard 99 of "Halo .*" is known\.$/],
    [`/api/game/${HALO}/leaderboards/99?offset=5`, /leaderboard 99/],
    [`/api/game/${HALO}/leaderboards/99?asOf=2020-01-01T00:00:00Z`, /leaderboard 99/],
    [`/api/game/${HALO}/leaderboards/99/records`, /leaderboard 99/],
    [`/api/game/${HALO}/leaderboards/99/compare?from=2020-01-01T00:00:00Z`, /leaderboard 99/],
    ['/api/records/recent?game=nobody', /nobody/],
    ['/api/leaderboard-changes?game=nobody', /nobody/]
  ] as const) {
    const answer = await api.get(url)
    t.equal(answer.statusCode, 404, url)
    t.match(answer.json(), { error: sentence }, url)
    t.same(Object.keys(answer.json()), ['error'])
  }
})

test('every parameter of boards and changes is refused by name with the reason', async (t) => {
  const api = await openBoardApi(t)
  await storeTwoBoards(api)
  const bad = ['', '-1', '1.5', '1e1', '0x1', '01', '99999999999999999999', '%00', '%F0%9F%91%BE', 'x'.repeat(10_000)]
  const board = `/api/game/${HALO}/leaderboards/7`
  const parameters: readonly (readonly [string, readonly string[]])[] = [
    [`${board}?`, ['limit', 'offset', 'asOf']],
    [`${board}/compare?from=2026-01-01T00:00:00Z&`, ['to', 'limit']],
    [`${board}/compare?`, ['from']],
    [`${board}/records?`, ['limit', 'offset']],
    ['/api/records/recent?', ['limit', 'offset']],
    ['/api/leaderboard-changes?', ['limit', 'offset', 'after', 'changeType', 'since', 'until']],
    [`/api/leaderboard-changes?game=${HALO}&`, ['leaderboardId']]
  ]
  for (const [path, names] of parameters) {
    const wrong: string[] = []
    for (const name of names) {
      for (const query of [...bad.map((value) => `${name}=${value}`), `${name}=7&${name}=7`]) {
        const answer = await api.get(`${path}${query}`)
        const { error = '' } = answer.json<{ error?: string }>()
        const isSaid = answer.statusCode === 400 && error.includes(name) && error.length < 400
        const isTooLong = answer.statusCode === 414 && query.length > 9000
        if (!isSaid && !isTooLong) wrong.push(`${query.slice(0, 60)}: ${answer.statusCode} ${error}`)
      }
    }
    t.same(wrong, [], path)
  }
  for (const id of ['-1', '1.5', 'x', '4294967296', '%00', '01', 'x'.repeat(3000)]) {
    const answer = await api.get(`/api/game/${HALO}/leaderboards/${id}`)
    t.match([answer.statusCode, answer.json().error], [400, /leaderboardId/], id.slice(0, 20))
  }
  for (const query of ['limit=0', 'limit=501', 'offset=10001', 'game=', 'player=', 'game=a&game=b', 'player=%07']) {
    t.equal((await api.get(`/api/leaderboard-changes?${query}`)).statusCode, 400, query)
  }
  for (const [url, sentence] of [
    ['/api/leaderboard-changes?leaderboardId=7', /leaderboardId needs game/],
    ['/api/leaderboard-changes?after=start&offset=0', /offset cannot be given together with after/],
    ['/api/leaderboard-changes?since=2026-01-01T00:00:00Z&until=2026-01-01T00:00:00Z', /since must be before until/],
    [`${board}/compare?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z`, /from must be before to/],
    [`${board}/compare`, /from .*missing/],
    [`${board}?asOf=2026-03-14T20:00:31Z`, /asOf is in the future: 2026-03-14T20:00:31.000Z/],
    [`${board}/compare?from=2026-01-02T00:00:00Z&to=2027-01-01T00:00:00Z`, /to is in the future/]
  ] as const) {
    const answer = await api.get(url)
    t.match([answer.statusCode, answer.json().error], [400, sentence], url)
  }
})

test('a change of another board keeps a board’s answer in the cache; its own does not', async (t) => {
  const api = await openBoardApi(t)
  await storeTwoBoards(api)
  const url = `/api/game/${HALO}/leaderboards/7`
  const tag = String((await api.get(url)).headers.etag)
  const again = async () => (await api.get(url, { 'if-none-match': tag })).statusCode
  await api.changed(`leaderboard-entry:${HALO}/3`, 'leaderboard:4d530002', 'title-latest')
  t.equal(await again(), 304)
  await api.changed(`leaderboard-entry:${HALO}/7`)
  t.equal(await again(), 200)
})
