import { deepStrictEqual } from 'node:assert'
import { runs } from '@gamenet/engines/testing'
import { LeaderboardChanges, lineText, measureGap, nameKey, Player, SuggestedPlayers } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { NOW_MS, openBoardApi, storeTitles } from './board-api.js'
import {
  allEntries,
  boardNameOf,
  compareKeys,
  compareText,
  describeBoards,
  NAMES,
  type Placed,
  storeWorld,
  type World,
  worlds
} from './search-model.js'
import { time } from './stored-tables.js'

const PROJECTIONS = ['player-entry', 'leaderboard-entry', 'player', 'leaderboard', 'title']
const GAMES: Record<string, string> = { '4d530001': 'Race', '4d530002': '4d530002' }

async function openPlayers(t: Parameters<typeof openBoardApi>[0]) {
  const api = await openBoardApi(t)
  await storeTitles(api.model, { '4d530001': 'Race' })
  await describeBoards(api.model)
  const show = async (world: World) => {
    await storeWorld(api.model, world)
    await api.changed(...PROJECTIONS)
  }
  return { ...api, show }
}

/** Returns the rank of an entry, by loops over its board. */
function plainPlace(entry: Placed, { now }: World) {
  const board = now.find((each) => each.titleId === entry.titleId && each.leaderboardId === entry.leaderboardId)
  const entries = board?.entries ?? []
  const better = entries.filter(({ rank }) => rank < entry.rank)
  const above = better.reduce<(typeof better)[number] | undefined>(
    (nearest, each) => (nearest === undefined || each.rank >= nearest.rank ? each : nearest),
    undefined
  )
  return {
    leaderboardId: entry.leaderboardId,
    leaderboardName: boardNameOf(entry),
    titleId: entry.titleId,
    gameName: GAMES[entry.titleId],
    playerName: entry.playerName,
    rank: entry.rank,
    entries: entries.length,
    percentile: Number((((entries.length - better.length) / entries.length) * 100).toFixed(1)),
    rating: entry.rating,
    timeMs: entry.timeMs ?? 0,
    isTime: entry.timeMs !== null,
    next:
      above === undefined
        ? null
        : { rank: above.rank, playerName: above.playerName, rating: above.rating, gap: measureGap(entry, above) }
  }
}

test('all boards of a player have rank, size, percentile and the entry above, equal to plain loops', async (t) => {
  const { get, show } = await openPlayers(t)
  // Boards keep no others.
  const names = fc.constantFrom(...NAMES.filter((name) => name === lineText(name)))
  await fc.assert(
    fc.asyncProperty(worlds, names, fc.constantFrom(1, 2, 1000), fc.constantFrom(0, 1), async (...drawn) => {
      const [world, name, limit, offset] = drawn
      await show(world)
      const all = allEntries(world)
        .filter((entry) => nameKey(entry.playerName) === nameKey(name))
        .sort((a, b) => a.rank - b.rank || compareKeys(a, b))
      const answer = await get(`/api/player/${encodeURIComponent(name)}?limit=${limit}&offset=${offset}`)
      const { boards, ...answered } = Player.parse(answer.json())
      deepStrictEqual(answered, {
        playerName: name,
        spellings: [...new Set(all.map(({ playerName }) => playerName))].sort(),
        total: all.length
      })
      const shown = boards.map(({ next, timeFormatted: _, observedAt, ...rest }) => {
        deepStrictEqual(observedAt, '2026-03-14T20:00:30.000Z')
        if (next === null) return { ...rest, next }
        const { timeMs, timeFormatted, isTime, ...above } = next
        return { ...rest, next: above }
      })
      deepStrictEqual(
        shown,
        all.slice(offset, offset + limit).map((entry) => plainPlace(entry, world))
      )
      const link = answer.headers.link
      deepStrictEqual(link === undefined, offset + limit >= all.length)
    }),
    runs(4)
  )
  t.pass()
})

test('the pages of a player link to the next one, and have every entry once', async (t) => {
  const { get, show } = await openPlayers(t)
  const entries = ['ann', 'Ann', 'ANN'].map((playerName, place) => ({
    playerName,
    occurrence: 1,
    rank: place + 1,
    place,
    rating: String(10 - place),
    timeMs: null
  }))
  await show({ before: [], now: [{ titleId: '4d530001', leaderboardId: 1, entries }] })
  const seen: string[] = []
  let url: string | undefined = '/api/player/aNN?limit=1'
  while (url !== undefined) {
    const answer = await get(url)
    seen.push(...Player.parse(answer.json()).boards.map(({ playerName }) => playerName))
    url = /^<(.+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
  }
  t.same(seen, ['ann', 'Ann', 'ANN'])
  t.same((await get('/api/player/nobody')).json(), { playerName: 'nobody', spellings: [], total: 0, boards: [] })
})

test('a gap is in milliseconds or points, also beyond 2^53, and never between values that cannot be compared', async (t) => {
  const score = (rating: string) => ({ rating, timeMs: null })
  t.equal(measureGap({ rating: '', timeMs: 1000 }, { rating: '', timeMs: 955 }), 45)
  t.equal(measureGap(score('98,765,432,109,876,543'), score('98765432109876545')), 2)
  t.equal(measureGap(score('-3.5'), score('1,250')), 1253.5)
  t.equal(measureGap(score('none'), score('7')), null)
  t.equal(measureGap({ rating: '', timeMs: 1000 }, score('7')), null)
})

test('names are suggested by their beginning, without case, one spelling each', async (t) => {
  const { get, show, model, changed } = await openPlayers(t)
  await show({ before: [], now: [] })
  const many = Array.from({ length: 700 }, (_, n) => `zed ${String(n).padStart(4, '0')}`)
  const names = [...NAMES, ...many, ...many.slice(0, 300).map((name) => name.toUpperCase()), 'ΟΔΟΣΤΡΩΤΗΡΑΣ', '%_\\']
  for (const half of [names, names.slice(0, 400)]) {
    await model.insert(
      'player',
      ['player_key', 'player'],
      half.map((name) => [nameKey(name), name])
    )
  }
  await changed('player')
  const plain = (beginning: string, limit: number) => {
    const key = nameKey(beginning)
    const keys = [...new Set(names.map(nameKey))].filter((each) => each.startsWith(key))
    return keys.sort(compareText).slice(0, limit)
  }
  for (const [q, limit] of [
    ['a', 10],
    ['ANN', 1],
    ['Bo', 10],
    ['ｂＯｂ', 10],
    ['zed', 50],
    ['ZED 00', 50],
    ['zed 0699', 3],
    ['%', 10],
    ['_', 10],
    ['%_\\', 10],
    ["o'", 10],
    ['🎮', 10],
    ['nobody', 10]
  ] as const) {
    const { results, count } = SuggestedPlayers.parse(
      (await get(`/api/datasearch/suggest?q=${encodeURIComponent(q)}&limit=${limit}`)).json()
    )
    t.same(results.map(nameKey), plain(q, limit), q)
    t.equal(count, results.length)
    t.ok(results.every((name) => names.includes(name)))
  }
  const sigma = SuggestedPlayers.parse((await get(`/api/datasearch/suggest?q=${encodeURIComponent('ΟΔΟΣ')}`)).json())
  t.same(sigma.results, ['ΟΔΟΣ', 'ΟΔΟΣΤΡΩΤΗΡΑΣ'], 'a sigma ends the name, or stands within it')
  t.equal(SuggestedPlayers.parse((await get('/api/datasearch/suggest?q=zed')).json()).count, 10, '10 unless said')
})

test('the history of a player has the changes of every spelling, newest first, page by page', async (t) => {
  const { get, model, changed } = await openPlayers(t)
  const row = (offset: number, minutesAgo: number, player: string, isChange = true, version = 1) => ({
    ts: time(NOW_MS - minutesAgo * 60_000),
    title_id: '4d530001',
    leaderboard_id: 1,
    epoch: 1,
    partition: 0,
    offset,
    recorded_epoch: 1,
    recorded_partition: 0,
    recorded_offset: offset,
    is_change: isChange,
    change: 'new',
    player,
    player_key: nameKey(player),
    occurrence: 1,
    new_rank: offset,
    new_rating: String(offset),
    is_time: false,
    version
  })
  await model.insertRows('leaderboard_change', [
    row(1, 50, 'ann'),
    row(2, 40, 'ANN'),
    row(3, 40, 'Ann'),
    row(4, 10, 'bob'),
    row(5, 5, 'ann'),
    row(6, 60, 'ann')
  ])
  // A late event has undone one of the changes.
  await model.insertRows('leaderboard_change', [row(5, 5, 'ann', false, 2)])
  await changed('leaderboard-entry')
  const first = await get('/api/player/aNN/history?limit=2')
  const ranks = (answer: typeof first) => LeaderboardChanges.parse(answer.json()).map(({ newRank }) => newRank)
  t.same(ranks(first), [3, 2])
  t.match(first.json()[0], { gameName: 'Race', leaderboardName: 'Board 1 of 4d530001', playerName: 'Ann' })
  const next = /^<(.+)>; rel="next"$/.exec(String(first.headers.link))?.[1] ?? ''
  const second = await get(next)
  t.same(ranks(second), [1, 6])
  t.equal(second.headers.link, undefined)
  t.same((await get('/api/player/nobody/history')).json(), [])
})

test('a gamertag belongs to the users who linked it and whose session has it, and to nobody else', async (t) => {
  const { model, changed, get } = await openPlayers(t)
  const columns = ['user_key', 'username', 'linked_gamertag', 'gamertag_key', 'console_verified', 'revision']
  await model.insert('profile', columns, [
    ['ann', 'Ann', 'Night Hawk', 'night hawk', true, 1],
    ['bob', 'Bob', 'NIGHT hawk', 'night hawk', true, 1],
    ['eve', 'Eve', 'Night Hawk', 'night hawk', false, 1],
    ['cleo', 'Cleo', 'Night Hawk', 'night hawk', true, 1]
  ])
  await model.insert('profile', columns, [['cleo', 'Cleo', 'Dawn', 'dawn', true, 2]])
  await changed('profile')
  t.same((await get('/api/player/night%20HAWK/users')).json(), {
    playerName: 'night HAWK',
    users: [
      { username: 'Ann', gamertag: 'Night Hawk' },
      { username: 'Bob', gamertag: 'NIGHT hawk' }
    ]
  })
  t.same((await get('/api/player/nobody/users')).json(), { playerName: 'nobody', users: [] })
})
