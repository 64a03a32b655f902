import { nameKey } from '@gamenet/schemas'
import { test } from 'tap'
import { NOW_MS, openBoardApi, storeDescriptions, storeTitles } from './board-api.js'
import { time } from './stored-tables.js'

const HALO = '4d530001'
const at = (minute: number) => NOW_MS - 3_600_000 + minute * 60_000
const iso = (minute: number) => new Date(at(minute)).toISOString()

type Reign = readonly [
  player: string,
  rating: string,
  timeMs: number | null,
  set: number,
  from: number,
  to: number | null
]

async function openRecords(t: Parameters<typeof openBoardApi>[0]) {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { [HALO]: 'Halo' })
  await storeDescriptions(api.model, [[HALO, 1, at(0), 'Laps', true]])
  const columns = [
    ...['title_id', 'leaderboard_id', 'players', 'occurrences', 'ratings', 'times_ms', 'set_at', 'from_at', 'to_at'],
    'version'
  ]
  const store = async (titleId: string, board: number, reigns: readonly Reign[], version: number) =>
    await api.model.insert('record_history', columns, [
      [
        titleId,
        board,
        reigns.map(([player]) => player),
        reigns.map(() => 1),
        reigns.map(([, rating]) => rating),
        reigns.map(([, , timeMs]) => timeMs),
        reigns.map(([, , , set]) => time(at(set))),
        reigns.map(([, , , , from]) => time(at(from))),
        reigns.map(([, , , , , to]) => (to === null ? null : time(at(to)))),
        version
      ]
    ])
  return { ...api, store }
}

test('a board’s record is listed reign by reign, with restored records and with gaps', async (t) => {
  const { store, changed, get } = await openRecords(t)
  await store(HALO, 1, [['wrong', '1', null, 1, 1, null]], 1)
  await store(
    HALO,
    1,
    [
      ['ann', '01:03.000', 63_000, 1, 1, 2],
      ['bob <b>', '01:02.000', 62_000, 2, 2, 3],
      ['ann', '01:03.000', 63_000, 1, 3, 4],
      ['eve', '0', null, 6, 6, null]
    ],
    2
  )
  await changed('title', 'leaderboard', 'leaderboard-entry')
  const url = `/api/game/halo/leaderboards/1/records`
  const body = (await get(url)).json()
  const time63 = { rating: '01:03.000', timeMs: 63_000, timeFormatted: '1:03.000', isTime: true }
  t.same(body, {
    titleId: HALO,
    gameName: 'Halo',
    leaderboardId: '1',
    name: 'Laps',
    listed: true,
    total: 4,
    records: [
      {
        playerName: 'ann',
        ...time63,
        ...{ setAt: iso(1), fromAt: iso(1), toAt: iso(2), fromIsFirstSight: true, isContested: false }
      },
      {
        playerName: 'bob <b>',
        rating: '01:02.000',
        timeMs: 62_000,
        timeFormatted: '1:02.000',
        isTime: true,
        ...{ setAt: iso(2), fromAt: iso(2), toAt: iso(3), fromIsFirstSight: false, isContested: true }
      },
      {
        playerName: 'ann',
        ...time63,
        ...{ setAt: iso(1), fromAt: iso(3), toAt: iso(4), fromIsFirstSight: false, isContested: false }
      },
      {
        playerName: 'eve',
        rating: '0',
        timeMs: 0,
        timeFormatted: '',
        isTime: false,
        ...{ setAt: iso(6), fromAt: iso(6), toAt: null, fromIsFirstSight: false, isContested: false }
      }
    ]
  })
  const page = await get(`${url}?limit=3&offset=1`)
  t.same([page.json().records, page.headers.link], [body.records.slice(1), undefined])
  const first = await get(`${url}?limit=3`)
  const next = /^<(.*)>; rel="next"$/.exec(String(first.headers.link))?.[1] ?? ''
  t.same([...first.json().records, ...(await get(next)).json().records], body.records)
})

test('records newly set are listed newest first with the beaten player; restored ones are not new', async (t) => {
  const { store, changed, get, model } = await openRecords(t)
  await store(
    HALO,
    1,
    [
      ['ann', '63', 63, 1, 1, 2],
      ['bob', '62', 62, 2, 2, 3],
      ['ann', '63', 63, 1, 3, 4],
      ['eve', '99', null, 6, 6, null]
    ],
    1
  )
  await store(HALO, 2, [], 1)
  await store('0000beef', 7, [['zoe', '5', null, 5, 5, null]], 1)
  await changed('title', 'leaderboard', 'leaderboard-entry')
  const body = (await get('/api/records/recent')).json()
  t.same(
    body.map((r: Record<string, unknown>) => [
      r.gameName,
      r.leaderboardName,
      r.leaderboardId,
      r.playerName,
      r.setAt,
      r.previousPlayerName,
      r.previousRating,
      r.previousTimeMs,
      r.isCurrent
    ]),
    [
      ['Halo', 'Laps', 1, 'eve', iso(6), null, null, null, true],
      ['0000beef', '', 7, 'zoe', iso(5), null, null, null, true],
      ['Halo', 'Laps', 1, 'bob', iso(2), 'ann', '63', 63, false],
      ['Halo', 'Laps', 1, 'ann', iso(1), null, null, null, false]
    ]
  )
  const contested = body.filter((r: Record<string, unknown>) => r.previousPlayerName !== null)
  t.same(
    body.map((r: Record<string, unknown>) => r.isContested),
    [false, false, true, false]
  )
  t.same((await get('/api/records/recent?contested=true')).json(), contested, 'first sightings are left out')
  t.same((await get('/api/records/recent?contested=false')).json(), body)
  await model.insert(
    'player',
    ['player_key', 'player'],
    body.map(({ playerName }: { playerName: string }) => [nameKey(playerName), playerName])
  )
  await changed('player')
  const ofFirst = body.filter((r: { playerName: string }) => r.playerName === body[0].playerName)
  const asked = `/api/records/recent?player=${encodeURIComponent(body[0].playerName.toUpperCase())}`
  t.same((await get(asked)).json(), ofFirst, 'of a player in any spelling')
  t.same((await get('/api/records/recent?player=nobody')).json(), [])
  const ofContested = (await get('/api/records/recent.atom?contested=true')).body
  t.equal([...ofContested.matchAll(/<entry>/g)].length, 1)
  t.same((await get('/api/records/recent?limit=2&offset=1')).json(), body.slice(1, 3))
  t.same((await get('/api/records/recent?game=HALO&limit=1')).json(), body.slice(0, 1))
  const link = /^<(.*)>; rel="next"$/.exec(
    String((await get('/api/records/recent?game=halo&limit=2')).headers.link)
  )?.[1]
  t.same((await get(link ?? '')).json(), body.slice(3))
})

test('the entries of a board’s first instant are first sightings, however many of them held the record in turn', async (t) => {
  const { store, changed, get } = await openRecords(t)
  // Three entries of one instant, judged one by one; zoe beats the best, equals her, who takes nothing, and zoe is removed.
  await store(
    HALO,
    1,
    [
      ['ann', '70', 70, 1, 1, 1],
      ['bob', '65', 65, 1, 1, 1],
      ['eve', '60', 60, 1, 1, 2],
      ['zoe', '59', 59, 2, 2, 4],
      ['joe', '59', 59, 3, 4, 5],
      ['eve', '60', 60, 1, 5, null]
    ],
    1
  )
  await changed('title', 'leaderboard', 'leaderboard-entry')
  const { records } = (await get('/api/game/halo/leaderboards/1/records')).json()
  t.same(
    records.map((r: Record<string, unknown>) => [r.playerName, r.fromIsFirstSight, r.isContested]),
    [
      ['ann', true, false],
      ['bob', true, false],
      ['eve', true, false],
      ['zoe', false, true],
      ['joe', false, false],
      ['eve', false, false]
    ]
  )
  const page = (await get('/api/game/halo/leaderboards/1/records?offset=2')).json().records
  t.same(page, records.slice(2), 'a page knows the reigns before it')
  const recent = (await get('/api/records/recent')).json()
  t.same(
    recent.map((r: Record<string, unknown>) => [r.playerName, r.previousPlayerName, r.previousTimeMs, r.isContested]),
    [
      ['zoe', 'eve', 60, true],
      ['eve', null, null, false],
      ['bob', null, null, false],
      ['ann', null, null, false]
    ]
  )
  t.same((await get('/api/records/recent?contested=true')).json(), recent.slice(0, 1))
})

test('entries of the Atom feed have unique ids, also of one player in one instant; a board without a name has its number', async (t) => {
  const { store, changed, get } = await openRecords(t)
  const reigns = [70, 65, 60].map((seconds): Reign => ['ann/ü', `01:${seconds - 60}.000`, seconds * 1000, 1, 1, 1])
  await store(HALO, 1, reigns, 1)
  await store(HALO, 7, [['ann/ü', '5', null, 1, 1, null]], 1)
  await changed('title', 'leaderboard', 'leaderboard-entry')
  const { body } = await get('/api/records/recent.atom')
  const ids = body.match(/(?<=<entry><id>)[^<]*/g) ?? []
  t.equal(ids.length, 4)
  t.equal(new Set(ids).size, 4, String(ids))
  t.match(body, /<title>ann\/ü: 5 on leaderboard 7 \(Halo\)<\/title>/)
  t.match(body, / on Laps \(Halo\)<\/title>/)
})
