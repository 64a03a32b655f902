import { deepStrictEqual } from 'node:assert'
import { matchesOf, newestLists, type PlainList, runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import {
  gameMatches,
  lastMatches,
  lobbies,
  lobbyStats,
  matches,
  matchHistory,
  matchStats
} from '../src/routes/match-list.js'
import { onlineUsers } from '../src/routes/title-count.js'
import { ask, OPEN_LIST_AGE_MS } from './ask.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, rounded, second } from './plain-counts.js'
import { instantMs, iso, NOW_MS, windowMs } from './samples.js'
import { catalogNaming, openStoredTables, type StoredTables, time } from './stored-tables.js'

const HALO = '4d530001'
const QUIET = '4d530002'
const catalog = catalogNaming({ [HALO]: 'Halo 3' }, [HALO, QUIET])
const minuteNow = Math.floor(NOW_MS / MINUTE_MS) * MINUTE_MS
const todayMs = Math.floor(NOW_MS / DAY_MS) * DAY_MS

/** Matches of older lists are no longer open. */
const openSinceMs = minuteNow - OPEN_LIST_AGE_MS

const lobby = fc.record({
  host: fc.constantFrom('ann', 'bob', 'Ann', '', "<i>'\\\n", '日本'),
  players: fc.oneof(fc.integer({ min: 0, max: 16 }), fc.constant(4_294_967_295)),
  max: fc.constantFrom(0, 8, 16)
})
/** Lists at few minutes, so that matches continue, and at any instant, so that they cross boundaries. */
const listInstant = fc.oneof(
  instantMs,
  fc.integer({ min: 0, max: 60 }).map((minutes) => minuteNow - minutes * MINUTE_MS),
  fc.constantFrom(0, 24, 168, 720).map((hours) => minuteNow - hours * HOUR_MS)
)
const anyLists = fc.array(fc.record({ ms: listInstant, lobbies: fc.array(lobby, { maxLength: 5 }) }), { maxLength: 40 })

/** Stores lists of a title as the projections do, including corrected rows and a void match. */
async function store(model: StoredTables, titleId: string, facts: readonly PlainList[]): Promise<void> {
  const hosts = ({ lobbies }: PlainList) => lobbies.map(({ host }) => host)
  const players = ({ lobbies }: PlainList) => lobbies.map((each) => each.players)
  const max = ({ lobbies }: PlainList) => lobbies.map((each) => each.max)
  for (const half of [facts.slice(0, facts.length / 2), facts.slice(facts.length / 2)]) {
    const rows = half.map((list) => [
      titleId,
      time(list.ms),
      hosts(list),
      players(list),
      max(list),
      facts.indexOf(list)
    ])
    await model.insert('match_list', ['title_id', 'ts', 'hosts', 'players', 'max_players', 'position'], rows)
  }
  const lists = newestLists(facts)
  const [first, newest] = [lists[0], lists.at(-1)]
  const latest = ['title_id', 'ts', 'hosts', 'players', 'max_players', 'version']
  for (const [version, list] of [first, newest].entries()) {
    if (list === undefined) continue
    await model.insert('match_latest', latest, [
      [titleId, time(list.ms), hosts(list), players(list), max(list), String(version)]
    ])
  }
  await storeHours(model, titleId, lists)
  const columns = ['title_id', 'first_seen', 'host', 'nth', 'is_void', 'last_seen', 'peak_players', 'max_players']
  const found = matchesOf(lists)
  const rows = found.map((m) => [titleId, time(m.firstMs), m.host, m.nth, time(m.lastMs), m.peakPlayers, m.maxPlayers])
  const versioned = [...columns, 'players_sum', 'sightings', 'version']
  const stored = (isVoid: boolean, version: number) =>
    rows.map((row, n) => [
      ...row.slice(0, 4),
      isVoid,
      ...row.slice(4),
      found[n]?.playersSum,
      found[n]?.sightings,
      version
    ])
  await model.insert('match_session', versioned, stored(true, 1))
  await model.insert('match_session', versioned, stored(false, 2))
  const [match] = stored(true, 1)
  const ghost = match?.with(2, 'a ghost')
  if (ghost !== undefined) {
    await model.insert('match_session', versioned, [ghost.with(4, false)])
    await model.insert('match_session', versioned, [ghost.with(-1, 2)])
  }
}

async function storeHours(model: StoredTables, titleId: string, lists: readonly PlainList[]): Promise<void> {
  const hours = grouped(lists, ({ ms }) => Math.floor(ms / HOUR_MS) * HOUR_MS)
  const columns = ['title_id', 'hour', 'lists', 'lobbies', 'players', 'lobbies_max', 'lobbies_max_at', 'position']
  const rows = [...hours].map(([hour, of]) => {
    const most = Math.max(...of.map(({ lobbies }) => lobbies.length))
    const mostAt = of.find(({ lobbies }) => lobbies.length === most)?.ms ?? 0
    const all = of.flatMap(({ lobbies }) => lobbies)
    const players = all.reduce((sum, { players }) => sum + players, 0)
    return [titleId, time(hour).slice(0, 19), of.length, all.length, players, most, time(mostAt)]
  })
  await model.insert(
    'match_list_hour',
    columns,
    rows.map((row) => [...row.with(2, 999), 1])
  )
  await model.insert(
    'match_list_hour',
    columns,
    rows.map((row) => [...row, 2])
  )
}

function grouped<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}

async function clear(model: StoredTables): Promise<void> {
  await model.empty(['match_list', 'match_latest', 'match_list_hour', 'match_session'])
}

test('the matches of any window are those that overlap it, the last begun first', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  let open = 0
  await fc.assert(
    fc.asyncProperty(anyLists, fc.oneof(windowMs, fc.constantFrom(1, 24, 720)), async (facts, windowHours) => {
      await clear(model)
      await store(model, HALO, facts)
      await store(model, QUIET, [{ ms: minuteNow, lobbies: [{ host: 'other', players: 1, max: 2 }] }])
      const isLast = typeof windowHours === 'number'
      const fromMs = isLast ? minuteNow - windowHours * HOUR_MS : windowHours.fromMs
      const toMs = isLast ? minuteNow + MINUTE_MS : windowHours.toMs
      const given = isLast ? { hours: String(windowHours) } : { from: iso(fromMs), to: iso(toMs) }
      const { body } = await ask(matchHistory, { titleId: HALO.toUpperCase(), ...given }, needs)
      const lists = newestLists(facts)
      const expected = matchesOf(lists)
        .filter(({ firstMs, lastMs }) => firstMs < toMs && lastMs >= fromMs)
        .sort(
          (a, b) => b.firstMs - a.firstMs || Buffer.compare(Buffer.from(a.host), Buffer.from(b.host)) || a.nth - b.nth
        )
        .map(({ host, firstMs, lastMs, peakPlayers, maxPlayers }) => ({
          hostName: host,
          firstSeen: iso(firstMs),
          lastSeen: iso(lastMs),
          durationMinutes: rounded(BigInt(lastMs - firstMs), BigInt(MINUTE_MS), 1),
          peakPlayers,
          maxPlayers,
          isOpen: lastMs === lists.at(-1)?.ms && lastMs >= openSinceMs
        }))
      open += expected.filter(({ isOpen }) => isOpen).length
      deepStrictEqual(body, expected)
      if (!isLast) return
      const old = await ask(lastMatches, { titleId: HALO, hours: String(windowHours) }, needs)
      deepStrictEqual(old.body, body, 'the old path says the same')
    }),
    // Few of any lists are young enough to be open.
    { ...runs(4), examples: [[[{ ms: minuteNow, lobbies: [{ host: 'ann', players: 1, max: 8 }] }], 24]] }
  )
  t.ok(open > 0, `${open} open matches were among them`)
})

test('statistics of 30 days equal a plain computation from the lists and matches', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  await fc.assert(
    fc.asyncProperty(anyLists, async (facts) => {
      await clear(model)
      await store(model, HALO, facts)
      const { body } = await ask(matchStats, { titleId: HALO }, needs)
      deepStrictEqual(body, statsOf(newestLists(facts)))
      deepStrictEqual((await ask(lobbyStats, { titleId: HALO }, needs)).body, body, 'the old path says the same')
    }),
    runs(4)
  )
  t.pass()
})

function statsOf(lists: readonly PlainList[]) {
  const toMs = minuteNow + MINUTE_MS
  const within = lists.filter(({ ms }) => ms >= minuteNow - 30 * DAY_MS && ms < toMs)
  const matchesSince = (days: number) =>
    matchesOf(lists).filter(({ firstMs, lastMs }) => firstMs < toMs && lastMs >= minuteNow - days * DAY_MS)
  const month = matchesSince(30)
  const all = within.flatMap(({ lobbies }) => lobbies)
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + BigInt(each), 0n)
  const mean = (total: bigint, of: number) => (of === 0 ? 0 : rounded(total, BigInt(of), 1))
  const peak = Math.max(0, ...within.map(({ lobbies }) => lobbies.length))
  const peakAt = within.find(({ lobbies }) => lobbies.length === peak)
  const hours = new Set(within.map(({ ms }) => Math.floor(ms / HOUR_MS)))
  let busiest: { hour: number; players: bigint; lists: bigint } | undefined
  for (let hour = 0; hour < 24; hour += 1) {
    const of = within.filter(({ ms }) => new Date(ms).getUTCHours() === hour)
    const players = sum(of.flatMap(({ lobbies }) => lobbies.map((each) => each.players)))
    const count = BigInt(of.length)
    if (count > 0n && (busiest === undefined || players * busiest.lists > busiest.players * count)) {
      busiest = { hour, players, lists: count }
    }
  }
  const byHost = grouped(month, ({ host }) => host)
  const last = lists.at(-1)
  const newest = last !== undefined && last.ms >= openSinceMs ? last.lobbies : []
  const minutes = sum(month.map(({ firstMs, lastMs }) => lastMs - firstMs))
  return {
    titleId: HALO,
    gameName: 'Halo 3',
    currentMatches: newest.length,
    currentPlayers: Number(sum(newest.map((each) => each.players))),
    matches24h: matchesSince(1).length,
    matches7d: matchesSince(7).length,
    matches30d: month.length,
    peakConcurrentMatches: peak,
    peakConcurrentMatchesAt: peakAt === undefined ? null : iso(peakAt.ms),
    averageDurationMinutes: month.length === 0 ? 0 : rounded(minutes, BigInt(month.length * MINUTE_MS), 1),
    averagePlayers: mean(sum(all.map((each) => each.players)), all.length),
    busiestHourUtc: hours.size < 24 ? null : (busiest?.hour ?? null),
    hoursWithLists: hours.size,
    topHosts: [...byHost]
      .map(([hostName, of]) => ({ hostName, matches: of.length }))
      .sort((a, b) => b.matches - a.matches || Buffer.compare(Buffer.from(a.hostName), Buffer.from(b.hostName)))
      .slice(0, 10)
  }
}

test('a busiest hour needs lists in 24 hours of the 30 days', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const stats = async (hours: number) => {
    await clear(model)
    // Half an hour into each evening from 20 to 23, so that no hour is an edge of the window.
    const at = (n: number) => todayMs - (1 + Math.floor(n / 4)) * DAY_MS + (20 + (n % 4)) * HOUR_MS + 30 * MINUTE_MS
    const lists = Array.from({ length: hours }, (_, n) => [0, 45 * 60].map((s) => at(n) + s * 10)).flat()
    await store(
      model,
      HALO,
      lists
        .sort((a, b) => a - b)
        .map((ms) => ({ ms, lobbies: [{ host: 'ann', players: new Date(ms).getUTCHours(), max: 8 }] }))
    )
    return (await ask(matchStats, { titleId: HALO }, needs)).body
  }
  t.match(await stats(1), { busiestHourUtc: null, hoursWithLists: 1 })
  t.match(await stats(23), { busiestHourUtc: null, hoursWithLists: 23 })
  t.match(await stats(24), { busiestHourUtc: 23, hoursWithLists: 24 })
})

test('current matches are the newest list in its order, by three paths; an empty list and none are empty', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const none = { titleId: QUIET, gameName: QUIET, matches: [] }
  t.same((await ask(matches, { titleId: QUIET }, needs)).body, none, 'a title that no list is known of')
  const row = (host: string, players: number, max: number) => ({ host, players, max })
  await store(model, HALO, [
    { ms: minuteNow - MINUTE_MS, lobbies: [row('gone', 1, 2)] },
    { ms: minuteNow + 1999, lobbies: [row('b', 3, 16), row('a', 0, 0), row('b', 4_294_967_295, 1)] }
  ])
  await store(model, QUIET, [{ ms: minuteNow, lobbies: [] }])
  const timestamp = second(minuteNow + 1000)
  for (const endpoint of [matches, gameMatches, lobbies]) {
    t.same((await ask(endpoint, { titleId: HALO.toUpperCase() }, needs)).body, {
      titleId: HALO,
      gameName: 'Halo 3',
      matches: [
        { hostName: 'b', currentPlayers: 3, maxPlayers: 16, timestamp },
        { hostName: 'a', currentPlayers: 0, maxPlayers: 0, timestamp },
        { hostName: 'b', currentPlayers: 4_294_967_295, maxPlayers: 1, timestamp }
      ]
    })
  }
  t.same((await ask(matches, { titleId: QUIET }, needs)).body, none)
})

test('a match of a list that is too old is not open, nor is it current', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const shown = async (ms: number, openListAgeMs = OPEN_LIST_AGE_MS) => {
    await clear(model)
    await store(model, HALO, [{ ms, lobbies: [{ host: 'ann', players: 3, max: 4 }] }])
    const withAge = { ...needs, openListAgeMs }
    const history = await ask(matchHistory, { titleId: HALO, hours: '100' }, withAge)
    const stats = await ask(matchStats, { titleId: HALO }, withAge)
    const now = await ask(matches, { titleId: HALO }, withAge)
    t.match(now.body, { matches: [{ hostName: 'ann', timestamp: second(ms) }] }, 'the newest list stays')
    return [history.body, stats.body]
  }
  const open = [[{ isOpen: true }], { currentMatches: 1, currentPlayers: 3, matches30d: 1 }]
  const over = [[{ isOpen: false }], { currentMatches: 0, currentPlayers: 0, matches30d: 1 }]
  t.match(await shown(minuteNow - 10 * MINUTE_MS), open)
  t.match(await shown(minuteNow - 10 * MINUTE_MS - 1), over)
  t.match(await shown(minuteNow - 3 * DAY_MS), over, 'imported')
  t.match(await shown(minuteNow - 3 * HOUR_MS, 3 * HOUR_MS), open, 'where lists are scraped once an hour')
})

test('a title without matches has zeros and nulls, an unknown one is refused, and so is an invalid title id or window', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  t.same((await ask(matchHistory, { titleId: QUIET }, needs)).body, [])
  t.same((await ask(matchStats, { titleId: QUIET }, needs)).body, {
    titleId: QUIET,
    gameName: QUIET,
    currentMatches: 0,
    currentPlayers: 0,
    matches24h: 0,
    matches7d: 0,
    matches30d: 0,
    peakConcurrentMatches: 0,
    peakConcurrentMatchesAt: null,
    averageDurationMinutes: 0,
    averagePlayers: 0,
    busiestHourUtc: null,
    hoursWithLists: 0,
    topHosts: []
  })
  const asking = [
    (titleId: string) => ask(matches, { titleId }, needs),
    (titleId: string) => ask(gameMatches, { titleId }, needs),
    (titleId: string) => ask(matchHistory, { titleId }, needs),
    (titleId: string) => ask(lastMatches, { titleId, hours: '1' }, needs),
    (titleId: string) => ask(matchStats, { titleId }, needs)
  ]
  for (const windowHours of asking) {
    await t.rejects(windowHours('4D53FFFF'), { status: 404, message: 'No title 4d53ffff is known.' })
    for (const unknown of ['4d5300', '4d53000g', '4d5300011', '😀'.repeat(4)])
      await t.rejects(windowHours(unknown), { status: 404, code: 'game_unknown' }, unknown)
    for (const bad of ['', '4d530001\0', 'a'.repeat(10_000)])
      await t.rejects(windowHours(bad), { status: 400, message: /titleId/ }, JSON.stringify(bad.slice(0, 20)))
  }
  for (const hours of ['0', '721', '1.0', '1e1', '-1', '', '\0', ['1', '2']]) {
    const given = { titleId: HALO, hours }
    await t.rejects(ask(matchHistory, given, needs), { status: 400, message: /^hours/ }, JSON.stringify(hours))
    await t.rejects(ask(lastMatches, given, needs), { status: 400, message: /^hours/ }, JSON.stringify(hours))
  }
  await t.rejects(ask(lastMatches, { titleId: HALO }, needs), { status: 400, message: /^hours .*missing/ })
  const windows = [{ to: iso(NOW_MS) }, { from: iso(NOW_MS), to: iso(NOW_MS) }, { hours: '2', from: iso(0) }]
  for (const each of windows) {
    await t.rejects(ask(matchHistory, { titleId: HALO, ...each }, needs), { status: 400, code: 'window_invalid' })
  }
})

test('a window with more than 100,000 matches is refused, one with exactly as many is answered', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const insert = (count: number) =>
    model.clickhouse.loader.execute(
      `INSERT INTO match_session__0 (title_id, first_seen, host, nth, last_seen, version)
       SELECT '${HALO}', fromUnixTimestamp64Milli(${minuteNow - DAY_MS} + number), 'h', 1,
         fromUnixTimestamp64Milli(${minuteNow - DAY_MS} + number), 1 FROM numbers(${count})`
    )
  await insert(100_000)
  t.equal(((await ask(matchHistory, { titleId: HALO }, needs)).body as unknown[]).length, 100_000)
  await insert(100_001)
  await t.rejects(ask(matchHistory, { titleId: HALO }, needs), { status: 400, message: /more than 100000 matches/ })
  const from = iso(minuteNow - DAY_MS + 1)
  const shorter = await ask(matchHistory, { titleId: HALO, from, to: iso(NOW_MS) }, needs)
  t.equal((shorter.body as unknown[]).length, 100_000)
})

test('the old paths name the paths to use', async (t) => {
  const successors = [
    lobbies.deprecated?.successor({ titleId: HALO }),
    lastMatches.deprecated?.successor({ titleId: HALO, hours: 48 }),
    lobbyStats.deprecated?.successor({ titleId: HALO })
  ]
  t.same(successors, [
    `/api/title/${HALO}/matches`,
    `/api/title/${HALO}/matches/history?hours=48`,
    `/api/title/${HALO}/matches/stats`
  ])
  for (const endpoint of [matches, gameMatches, matchHistory, matchStats]) t.equal(endpoint.deprecated, undefined)
})

test('the live counts name the hosts of a list that is not much older than the count', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const columns = ['title_id', 'ts', 'online', 'version']
  await model.insert(
    'title_latest',
    columns,
    [HALO, QUIET].map((id) => [id, time(minuteNow), 5, '1'])
  )
  const hosts = async () => {
    const { body } = await ask(onlineUsers, {}, needs)
    const games = Object.values(body as Record<string, { titleId: string; lobbyHostNames: string[] }>)
    return Object.fromEntries(games.map(({ titleId, lobbyHostNames }) => [titleId, lobbyHostNames]))
  }
  t.same(await hosts(), { [HALO]: [], [QUIET]: [] })
  const lobbiesOf = (...names: string[]) => names.map((host) => ({ host, players: 1, max: 2 }))
  await store(model, HALO, [{ ms: minuteNow - 10 * MINUTE_MS, lobbies: lobbiesOf('b', 'a', 'b') }])
  await store(model, QUIET, [{ ms: minuteNow - 10 * MINUTE_MS - 1, lobbies: lobbiesOf('late') }])
  t.same(await hosts(), { [HALO]: ['b', 'a', 'b'], [QUIET]: [] })
  await clear(model)
  await store(model, HALO, [{ ms: minuteNow, lobbies: [] }])
  await store(model, QUIET, [{ ms: minuteNow + 30_000, lobbies: lobbiesOf('new') }])
  t.same(await hosts(), { [HALO]: [], [QUIET]: ['new'] })
})
