import { deepStrictEqual } from 'node:assert'
import { newestSamples, rollupsOf, runs, type Sample } from '@gamenet/engines/testing'
import { FIRST_GENERATION, withServing } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { compareNames } from '../src/queries/catalog.js'
import { rowsOf } from '../src/queries/query.js'
import { newestTitleCounts } from '../src/queries/title-count.js'
import { activitySummary } from '../src/routes/network-count.js'
import { onlineUsers, titleOnlineHistory, topGames } from '../src/routes/title-count.js'
import { ask } from './ask.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, rounded, seriesOf, within } from './plain-counts.js'
import { factsOf, iso, NOW_MS, resolutions, windowMs } from './samples.js'
import { catalogNaming, openStoredTables, time } from './stored-tables.js'

const ALPHA = '4d530001'
const BETA = '4d530002'
const SAME = '4d530003'
const NAMELESS = '000000aa'
const IDS = [ALPHA, BETA, SAME, NAMELESS]
const catalog = catalogNaming({ [ALPHA]: 'Älpha & Co', [BETA]: 'beta', [SAME]: 'beta' }, IDS)
const NAMES: Record<string, string> = { [ALPHA]: 'Älpha & Co', [BETA]: 'beta', [SAME]: 'beta', [NAMELESS]: NAMELESS }
const anyFacts = factsOf(...IDS)
const minuteNow = Math.floor(NOW_MS / MINUTE_MS) * MINUTE_MS

/** The expected games of a window, computed by loops. */
function gamesOf(samples: readonly Sample[]) {
  return rollupsOf(samples, Number.MAX_SAFE_INTEGER)
    .map(({ key, max, maxAtMs, sum, samples: count, activeHours }) => ({
      titleId: key,
      name: NAMES[key] ?? '',
      peak: max,
      peakAt: iso(maxAtMs),
      average: rounded(sum, BigInt(count), 1),
      samples: count,
      activeHours
    }))
    .sort((a, b) => b.peak - a.peak || compareNames(a.name, b.name) || (a.titleId < b.titleId ? -1 : 1))
}

test('players of a title over any window equal the samples, or the peak of each bucket', async (t) => {
  const model = await openStoredTables()
  await fc.assert(
    fc.asyncProperty(anyFacts, windowMs, resolutions, async (facts, { fromMs, toMs }, resolution) => {
      await model.clear()
      await model.storeTitles(facts)
      const given = { titleId: ALPHA.toUpperCase(), from: iso(fromMs), to: iso(toMs), resolution }
      const { body, headers } = await ask(titleOnlineHistory, given, {
        tables: model.clickhouse.readers,
        nowMs: NOW_MS,
        catalog
      })
      const samples = within(newestSamples(facts), fromMs, toMs).filter(({ key }) => key === ALPHA)
      deepStrictEqual(body, seriesOf(samples, Number(headers['X-Resolution-Seconds']), 'online_count'))
      if (resolution !== undefined) {
        deepStrictEqual(headers['X-Resolution-Seconds'], resolution === 'raw' ? '0' : resolution)
      }
    }),
    runs(6)
  )
  t.pass()
})

test('the last hours of a title start at the floored minute; default: 48', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const facts = [-49 * 60, -48 * 60 - 1, -48 * 60, -24 * 60, -60, 0].map((minutes, i) => ({
    key: ALPHA,
    ms: minuteNow + minutes * MINUTE_MS,
    value: i
  }))
  await model.storeTitles(facts)
  const counts = async (given: Record<string, string>) => {
    const { body, headers } = await ask(titleOnlineHistory, { titleId: ALPHA, ...given }, needs)
    return [headers['X-Resolution-Seconds'], ...(body as { online_count: number }[]).map((point) => point.online_count)]
  }
  t.same(await counts({}), ['300', 2, 3, 4, 5])
  t.same(await counts({ hours: '24' }), ['0', 3, 4, 5])
  t.same(await counts({ hours: '25' }), ['300', 3, 4, 5])
  t.same(await counts({ hours: '1', resolution: '3600' }), ['3600', 4, 5])
  t.same(await counts({ hours: '8760' }), ['21600', 2, 3, 5], 'peaks of six hours')
})

test('a title without events is unknown, one without samples in the window is empty', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  t.same((await ask(titleOnlineHistory, { titleId: NAMELESS }, needs)).body, [])
  await t.rejects(ask(titleOnlineHistory, { titleId: '4D53FFFF' }, needs), { status: 404, message: /4d53ffff/ })
  for (const titleId of ['4d5300', '4d53000g', '4d5300011'])
    await t.rejects(ask(titleOnlineHistory, { titleId }, needs), { status: 404, code: 'game_unknown' }, titleId)
  for (const titleId of ['', '4d530001\0']) {
    await t.rejects(
      ask(titleOnlineHistory, { titleId }, needs),
      { status: 400, message: /titleId/ },
      JSON.stringify(titleId)
    )
  }
  for (const hours of ['0', '8761', '1.0', '1e1', '0x1', '-1', '', ' 1', '+1', '01']) {
    await t.rejects(
      ask(titleOnlineHistory, { titleId: ALPHA, hours }, needs),
      { status: 400, message: /hours/ },
      JSON.stringify(hours)
    )
  }
})

test('top games of any window have peak, first instant of it, mean and active hours, highest peak first', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const limits = fc.constantFrom(undefined, 1, 2, 500)
  await fc.assert(
    fc.asyncProperty(
      anyFacts,
      fc.oneof(windowMs, fc.constantFrom(1, 3, 30, 365)),
      limits,
      async (facts, asked, limit) => {
        await model.clear()
        await model.storeTitles(facts)
        const isLast = typeof asked === 'number'
        const fromMs = isLast ? minuteNow - asked * DAY_MS : asked.fromMs
        const toMs = isLast ? minuteNow + MINUTE_MS : asked.toMs
        const given = isLast ? { days: String(asked) } : { from: iso(fromMs), to: iso(toMs) }
        const { body } = await ask(topGames, { ...given, limit: limit?.toString() }, needs)
        deepStrictEqual(body, gamesOf(within(newestSamples(facts), fromMs, toMs)).slice(0, limit))
      }
    ),
    runs(4)
  )
  t.pass()
})

test('the most played game of the summary has the highest peak, of equal ones the first by name', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  await fc.assert(
    fc.asyncProperty(anyFacts, fc.constantFrom('today', '7d'), async (facts, period) => {
      await model.clear()
      await model.storeTitles(facts)
      const fromMs = minuteNow - (period === '7d' ? 168 : 24) * HOUR_MS
      const games = gamesOf(within(newestSamples(facts), fromMs, minuteNow + MINUTE_MS))
      const [most] = games.filter(({ peak }) => peak > 0)
      const { body } = await ask(activitySummary, { period }, needs)
      const { mostPlayedGame, gamesWithActivityCount, totalSnapshotCount } = body as Record<string, unknown>
      deepStrictEqual(
        mostPlayedGame,
        most === undefined ? null : { name: most.name, titleId: most.titleId, peak: most.peak }
      )
      deepStrictEqual(gamesWithActivityCount, games.filter(({ peak }) => peak > 0).length)
      deepStrictEqual(totalSnapshotCount, 0, 'counts of titles are not counts of the network')
    }),
    runs(4)
  )
  await model.clear()
  await model.storeTitles([{ key: ALPHA, ms: minuteNow, value: 0 }])
  t.match((await ask(activitySummary, {}, needs)).body, { mostPlayedGame: null, gamesWithActivityCount: 0 })
  await model.clear()
  await model.storeTitles([SAME, BETA, ALPHA].map((key, i) => ({ key, ms: minuteNow - i * HOUR_MS, value: 7 })))
  const { body } = await ask(activitySummary, {}, needs)
  t.match(body, { mostPlayedGame: { name: 'Älpha & Co', titleId: ALPHA, peak: 7 }, gamesWithActivityCount: 3 })
})

test('online users are the titles of the newest scrape, including zero counts, keyed by unique names', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const columns = ['title_id', 'ts', 'online', 'sessions', 'lobby_players', 'version']
  t.same((await ask(onlineUsers, {}, needs)).body, {}, 'nothing yet')
  await model.insert('title_latest', columns, [
    [ALPHA, time(minuteNow - MINUTE_MS), 9, 1, 2, '1'],
    [BETA, time(minuteNow - MINUTE_MS), 9, 1, 2, '2'],
    ['4d530009', time(minuteNow - MINUTE_MS), 9, null, null, '3']
  ])
  await model.insert('title_latest', columns, [
    [ALPHA, time(minuteNow), 0, null, null, '4'],
    [BETA, time(minuteNow), 8, 3, 5, '5'],
    [SAME, time(minuteNow), 4, 0, 0, '6'],
    [NAMELESS, time(minuteNow), 1, 1, null, '7']
  ])
  await model.insert('title_latest', columns, [[BETA, time(minuteNow), 7, 3, 5, '8']])
  const rest = { image: '', publisher: '', lobbyHostNames: [] }
  const lobbies = (n: number, players: number) => ({
    activeLobbies: n,
    sessionCount: n,
    activeLobbyPlayers: players,
    hasActiveSession: n > 0
  })
  const { body } = await ask(onlineUsers, {}, needs)
  t.same(body, {
    [NAMELESS]: { name: NAMELESS, online: 1, titleId: NAMELESS, ...rest, ...lobbies(1, 0) },
    'Älpha & Co': { name: 'Älpha & Co', online: 0, titleId: ALPHA, ...rest, ...lobbies(0, 0) },
    beta: { name: 'beta', online: 7, titleId: BETA, ...rest, ...lobbies(3, 5) },
    [`beta [${SAME}]`]: { name: 'beta', online: 4, titleId: SAME, ...rest, ...lobbies(0, 0) }
  })
})

test('an import does not empty the live counts, and counts of the future are not shown', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const shown = async (nowMs = NOW_MS) =>
    Object.values((await ask(onlineUsers, {}, { ...needs, nowMs })).body as Record<string, { name: string }>)
  const columns = ['imported', 'title_id', 'ts', 'online', 'version']
  const endMs = minuteNow + MINUTE_MS
  await model.insert('title_latest', columns, [
    [true, ALPHA, time(minuteNow - HOUR_MS), 1, '1'],
    [true, BETA, time(endMs - 1), 2, '2'],
    [true, NAMELESS, time(endMs - 1), 3, '3'],
    [true, SAME, time(endMs), 4, '4']
  ])
  t.match(await shown(), [
    { titleId: NAMELESS, online: 3 },
    { titleId: BETA, online: 2 }
  ])
  t.match(await shown(endMs), [{ titleId: SAME, online: 4 }], 'its time has come')
  await model.insert('title_latest', columns, [
    [false, ALPHA, time(minuteNow - DAY_MS), 5, '5'],
    [false, BETA, time(minuteNow - DAY_MS), 6, '6'],
    [false, SAME, time(endMs), 7, '7'],
    [false, NAMELESS, time(minuteNow - 2 * DAY_MS), 8, '8']
  ])
  const scraped = await shown()
  t.equal(scraped.length, 2)
  t.match(scraped, [
    { titleId: ALPHA, online: 5 },
    { titleId: BETA, online: 6 }
  ])
  await model.clear()
  await model.insert('title_latest', columns, [[false, ALPHA, time(endMs), 5, '5']])
  t.same(await shown(), [], 'the only scrape is yet to come')
})

test('the last count of a title is the newest of scraped and imported ones', async (t) => {
  const model = await openStoredTables()
  await model.insert(
    'title_latest',
    ['imported', 'title_id', 'ts', 'online', 'version'],
    [
      [true, ALPHA, time(minuteNow), 1, '1'],
      [false, ALPHA, time(minuteNow - HOUR_MS), 1, '2'],
      [true, BETA, time(minuteNow - HOUR_MS), 1, '3'],
      [false, BETA, time(minuteNow - MINUTE_MS), 1, '4']
    ]
  )
  const rows = await rowsOf(withServing(model.clickhouse.readers, FIRST_GENERATION), newestTitleCounts, {
    to: NOW_MS
  })
  t.same(
    new Map(rows.map(({ titleId, countedAtMs }) => [titleId, countedAtMs])),
    new Map([
      [ALPHA, minuteNow],
      [BETA, minuteNow - MINUTE_MS]
    ])
  )
})

test('a game may be called __proto__', async (t) => {
  const model = await openStoredTables()
  await model.insert('title_latest', ['title_id', 'ts', 'online', 'version'], [[ALPHA, time(minuteNow), 3, '1']])
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog: catalogNaming({ [ALPHA]: '__proto__' }) }
  const { body } = await ask(onlineUsers, {}, needs)
  t.same(Object.keys(body as object), ['__proto__'])
})
