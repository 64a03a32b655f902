import { deepStrictEqual } from 'node:assert'
import { matchesOf, newestSamples, runs, type Sample } from '@gamenet/engines/testing'
import { FIRST_GENERATION, PERIODS, withServing } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { presenceFacts } from '../src/queries/play-time.js'
import { newestPlayersCheck } from '../src/queries/players-check.js'
import { rowsOf } from '../src/queries/query.js'
import { titleFacts } from '../src/queries/title.js'
import { newestTitleCounts } from '../src/queries/title-count.js'
import { calendar, hoursOfWeek, peaks, titleRanks } from '../src/routes/calendar.js'
import { matches, matchHistory, matchStats } from '../src/routes/match-list.js'
import {
  activitySummary,
  dailyOnline,
  lobbyHistory,
  onlineHistory,
  registeredUsers
} from '../src/routes/network-count.js'
import { onlineUsers, titleOnlineHistory, topGames } from '../src/routes/title-count.js'
import { ask } from './ask.js'
import { DAY_MS, HOUR_MS, MINUTE_MS } from './plain-counts.js'
import { iso, NOW_MS } from './samples.js'
import { catalogNaming, openStoredTables, type StoredTables, time } from './stored-tables.js'

/*
 * Events that a clock or an import dated after now: the newest value is the newest at or before now, everywhere. Each title has
 * its own mixture of events before and after now, in any order in the log.
 */

const IDS = ['4d530001', '4d530002', '4d530003']
const catalog = catalogNaming({}, IDS)
const minuteNow = Math.floor(NOW_MS / MINUTE_MS) * MINUTE_MS
const nowEnd = minuteNow + MINUTE_MS
const TABLES = [
  'event_title_count',
  'title_latest',
  'match_list',
  'match_latest',
  'match_session',
  'event_title',
  'title'
]

const instants = fc.constantFrom(-DAY_MS, -HOUR_MS, -MINUTE_MS, 0, MINUTE_MS - 1, MINUTE_MS, 2 * HOUR_MS, 900 * DAY_MS)
const counts = fc.array(
  fc.record({ titleId: fc.constantFrom(...IDS), at: instants, online: fc.nat(9), imported: fc.boolean() }),
  { maxLength: 8 }
)
type Counted = { titleId: string; at: number; online: number; imported: boolean }

/** The last element with the highest instant. */
function newest<Item extends { at: number }>(items: readonly Item[]): Item | undefined {
  return items.reduce<Item | undefined>(
    (best, each) => (best === undefined || each.at >= best.at ? each : best),
    undefined
  )
}

/** As the projections do: a version is the instant, then the position. */
const versionOf = (at: number, position: number) => String((BigInt(minuteNow + at) << 64n) + BigInt(position))

async function storeCounted(model: StoredTables, events: readonly Counted[]): Promise<void> {
  const rows = events.map((event, offset) => ({ ...event, offset, import_id: event.imported ? 'i' : '' }))
  const columns = ['epoch', 'partition', 'offset', 'import_id', 'observed_at', 'title_id', 'online']
  const stored = rows.map((e) => [0, 0, e.offset, e.import_id, time(minuteNow + e.at), e.titleId, e.online])
  await model.insert('event_title_count', columns, stored)
  const latest = ['imported', 'title_id', 'ts', 'online', 'version']
  const all = rows.map((e) => [e.imported, e.titleId, time(minuteNow + e.at), e.online, versionOf(e.at, e.offset)])
  for (const row of all) await model.insert('title_latest', latest, [row])
}

/** The live counts by loops: of the newest scraped, else imported, instant up to now. */
function liveOf(events: readonly Counted[]): Record<string, number> {
  const past = events.filter(({ at }) => at < MINUTE_MS)
  const scraped = past.filter(({ imported }) => !imported)
  const of = scraped.length > 0 ? scraped : past
  const at = newest(of)?.at
  const rows = of.filter((event) => event.at === at)
  return Object.fromEntries(rows.map(({ titleId, online }) => [titleId, online]))
}

test('live counts are those of the newest scrape up to now, whatever counts lie after now', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  let ahead = 0
  await fc.assert(
    fc.asyncProperty(counts, async (events) => {
      await model.empty(TABLES)
      await storeCounted(model, events)
      ahead += events.some(({ at }) => at >= MINUTE_MS) ? 1 : 0
      const { body } = await ask(onlineUsers, {}, needs)
      const shown = Object.values(body as Record<string, { titleId: string; online: number }>)
      deepStrictEqual(Object.fromEntries(shown.map(({ titleId, online }) => [titleId, online])), liveOf(events))
    }),
    {
      ...runs(40),
      examples: [
        [
          [
            { titleId: '4d530001', at: -MINUTE_MS, online: 4, imported: false },
            { titleId: '4d530001', at: 2 * HOUR_MS, online: 9, imported: false }
          ]
        ]
      ]
    }
  )
  t.ok(ahead > 0)
})

test('of titles with one name, counts after now decide nothing; a title with only such counts is known', async (t) => {
  const model = await openStoredTables()
  const columns = ['title_id', 'ts', 'online', 'position']
  await model.clear()
  await model.insert('title_count', columns, [
    ['4d530001', time(minuteNow - HOUR_MS), 1, 1],
    ['4d530001', time(minuteNow + HOUR_MS), 1, 2]
  ])
  const latest = ['title_id', 'ts', 'online', 'version']
  await model.insert('title_latest', latest, [
    ['4d530001', time(minuteNow + HOUR_MS), 1, '2'],
    ['4d530002', time(minuteNow - MINUTE_MS), 1, '3'],
    ['4d530003', time(minuteNow + HOUR_MS), 1, '4']
  ])
  const rows = await rowsOf(withServing(model.clickhouse.readers, FIRST_GENERATION), newestTitleCounts, { to: nowEnd })
  t.same(Object.fromEntries(rows.map(({ titleId, countedAtMs }) => [titleId, countedAtMs])), {
    '4d530001': minuteNow - HOUR_MS,
    '4d530002': minuteNow - MINUTE_MS,
    '4d530003': 0
  })
})

test('current and open matches are those of the newest list up to now', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const [titleId = ''] = IDS
  const lists = fc.uniqueArray(fc.record({ at: instants, hosts: fc.subarray(['ann', 'bob']) }), {
    selector: ({ at }) => at,
    maxLength: 5
  })
  await fc.assert(
    fc.asyncProperty(lists, async (drawn) => {
      const sorted = drawn.toSorted((a, b) => a.at - b.at)
      await model.empty(TABLES)
      const row = ({ at, hosts }: (typeof drawn)[number]) => [
        titleId,
        time(minuteNow + at),
        hosts,
        hosts.map(() => 2),
        hosts.map(() => 4)
      ]
      const columns = ['title_id', 'ts', 'hosts', 'players', 'max_players']
      await model.insert('match_list', columns, sorted.map(row))
      for (const [n, list] of sorted.entries())
        await model.insert('match_latest', [...columns, 'version'], [[...row(list), versionOf(list.at, n)]])
      const plain = sorted.map(({ at, hosts }) => ({
        ms: minuteNow + at,
        lobbies: hosts.map((host) => ({ host, players: 2, max: 4 }))
      }))
      await model.insert(
        'match_session',
        ['title_id', 'first_seen', 'host', 'nth', 'last_seen', 'peak_players', 'max_players', 'version'],
        matchesOf(plain).map((m) => [titleId, time(m.firstMs), m.host, m.nth, time(m.lastMs), 2, 4, 1])
      )
      const current = newest(sorted.filter(({ at }) => at < MINUTE_MS))
      const { body } = await ask(matches, { titleId }, needs)
      const shown = body as { matches: { hostName: string }[] }
      deepStrictEqual(
        shown.matches.map(({ hostName }) => hostName),
        current?.hosts ?? []
      )
      const isRecent = current !== undefined && current.at >= -10 * MINUTE_MS
      const stats = (await ask(matchStats, { titleId }, needs)).body as { currentMatches: number }
      deepStrictEqual(stats.currentMatches, isRecent ? current.hosts.length : 0)
      const history = (await ask(matchHistory, { titleId, hours: '48' }, needs)).body as {
        hostName: string
        isOpen: boolean
      }[]
      const open = history.filter(({ isOpen }) => isOpen).map(({ hostName }) => hostName)
      deepStrictEqual(open.toSorted(), isRecent ? current.hosts : [])
    }),
    runs(30)
  )
  t.pass()
})

test('peaks are of samples up to now', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const samples = fc.array(
    fc.record({
      key: fc.constantFrom('4d530001', '4d530002'),
      ms: instants.map((at) => minuteNow + at),
      value: fc.nat(9)
    }),
    { maxLength: 8 }
  )
  const totals = (facts: readonly Sample[]) => {
    const past = newestSamples(facts).filter(({ ms }) => ms < nowEnd)
    return Object.fromEntries(
      [...new Set(past.map(({ key }) => key))].map((key) => {
        const own = past.filter((each) => each.key === key).toSorted((a, b) => b.value - a.value || a.ms - b.ms)
        return [key, { peak: own[0]?.value, peakAt: iso(own[0]?.ms ?? 0), samples: own.length }]
      })
    )
  }
  await fc.assert(
    fc.asyncProperty(samples, async (facts) => {
      await model.clear()
      await model.storeTitles(facts)
      await model.storeNetwork(facts.map((fact) => ({ ...fact, key: 'online' })))
      const rows = (await ask(peaks, {}, needs)).body as {
        titleId: string | null
        peak: number
        peakAt: string
        samples: number
      }[]
      const shown = Object.fromEntries(
        rows.map(({ titleId, peak, peakAt, samples }) => [titleId ?? 'online', { peak, peakAt, samples }])
      )
      deepStrictEqual(shown, { ...totals(facts), ...totals(facts.map((fact) => ({ ...fact, key: 'online' }))) })
    }),
    runs(30)
  )
  t.pass()
})

const ZONES = ['UTC', 'Europe/Berlin', 'Asia/Kolkata'] as const
const samplesOf = (...keys: string[]) =>
  fc.array(fc.record({ key: fc.constantFrom(...keys), ms: instants.map((at) => minuteNow + at), value: fc.nat(9) }), {
    maxLength: 8
  })

test('answers about counts are the same with samples after now as without them', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const [titleId = ''] = IDS
  const window = { from: '2026-01-01', to: '2030-01-01' }
  const answers = async (every: string, tz: string) => [
    await ask(registeredUsers, {}, needs),
    await ask(dailyOnline, {}, needs),
    await ask(dailyOnline, window, needs),
    await ask(dailyOnline, { from: '2027-01-01', to: '2030-01-01' }, needs),
    await ask(onlineHistory, {}, needs),
    await ask(lobbyHistory, { days: '30' }, needs),
    await ask(activitySummary, {}, needs),
    await ask(topGames, {}, needs),
    await ask(titleOnlineHistory, { titleId }, needs),
    await ask(calendar, { every, tz }, needs),
    await ask(calendar, { every, tz, titleIds: IDS.slice(1).join(), rolling: '2' }, needs),
    await ask(calendar, { every, tz, ...window }, needs),
    await ask(hoursOfWeek, { tz }, needs),
    await ask(hoursOfWeek, { tz, titleId, ...window }, needs),
    await ask(titleRanks, { titleId, every, tz }, needs),
    await ask(titleRanks, { titleId, every, tz, ...window }, needs)
  ]
  const asked = fc.record({ every: fc.constantFrom(...PERIODS), tz: fc.constantFrom(...ZONES) })
  await fc.assert(
    fc.asyncProperty(
      samplesOf(...IDS),
      samplesOf('registered', 'online', 'lobbies'),
      asked,
      async (titles, network, { every, tz }) => {
        const past = ({ ms }: Sample) => ms < nowEnd
        await model.clear()
        await model.storeTitles(titles)
        await model.storeNetwork(network)
        const shown = (await answers(every, tz)).map(({ body }) => body)
        await model.clear()
        await model.storeTitles(titles.filter(past))
        await model.storeNetwork(network.filter(past))
        deepStrictEqual(
          shown,
          (await answers(every, tz)).map(({ body }) => body)
        )
      }
    ),
    runs(10)
  )
  t.pass()
})

test('facts of a title are the newest up to now; a field with later ones only has the newest of those', async (t) => {
  const model = await openStoredTables()
  await model.empty(TABLES)
  const events = [
    { titleId: '4d530001', at: -DAY_MS, name: 'Old' },
    { titleId: '4d530001', at: 2 * HOUR_MS, name: 'Future', publisher: 'P' },
    { titleId: '4d530001', at: -HOUR_MS, name: 'Now' },
    { titleId: '4d530002', at: -HOUR_MS, name: 'Plain' },
    { titleId: '4d530003', at: HOUR_MS, name: 'Early' }
  ]
  for (const [offset, { titleId, at, name, publisher }] of events.entries()) {
    const columns = ['epoch', 'partition', 'offset', 'observed_at', 'title_id', 'name', 'name_key', 'publisher']
    await model.insert('event_title', columns, [
      [0, 0, offset, time(minuteNow + at), titleId, name, name.toLowerCase(), publisher ?? null]
    ])
    const fact = (field: string, value: string, key: string) => [titleId, field, value, key, versionOf(at, offset)]
    const rows = [
      fact('name', name, name.toLowerCase()),
      ...(publisher === undefined ? [] : [fact('publisher', publisher, '')])
    ]
    await model.insert('title', ['title_id', 'field', 'value', 'name_key', 'version'], rows)
  }
  const rows = await rowsOf(withServing(model.clickhouse.readers, FIRST_GENERATION), titleFacts, { to: nowEnd })
  t.same(rows.map(({ titleId, field, value }) => [titleId, field, value].join(' ')).toSorted(), [
    '4d530001 name Now',
    '4d530001 publisher P',
    '4d530002 name Plain',
    '4d530003 name Early'
  ])
})

test('presence is that of the newest sighting up to now, per field; names are the newest of all', async (t) => {
  const model = await openStoredTables()
  const tables = withServing(model.clickhouse.readers, FIRST_GENERATION)
  const sightings = [
    [-DAY_MS, true, 'Race'],
    [-HOUR_MS, true, ''],
    [-MINUTE_MS, false, ''],
    [2 * HOUR_MS, true, 'Golf']
  ] as const
  const columns = ['user_key', 'ts', 'is_online', 'game', 'period_s', 'position']
  await model.insert(
    'presence',
    columns,
    sightings.map(([at, isOnline, game], n) => ['ann', time(minuteNow + at), isOnline, game, 60, n])
  )
  const latest = ['user_key', 'field', 'value', 'ts', 'version']
  const at = time(minuteNow + 2 * HOUR_MS)
  const facts = { username: 'Ann', seen: 'online', period: '60', online: 'Golf', game: 'Golf' }
  await model.insert(
    'presence_latest',
    latest,
    Object.entries(facts).map(([field, value]) => ['ann', field, value, at, '1'])
  )
  const shown = async (end: number) => {
    const rows = await rowsOf(tables, presenceFacts, { userKey: 'ann', nowEnd: end })
    return Object.fromEntries(rows.map(({ field, value, atMs }) => [field, [value, atMs - minuteNow]]))
  }
  t.same(await shown(nowEnd), {
    username: ['Ann', 2 * HOUR_MS],
    seen: ['offline', -MINUTE_MS],
    period: ['60', -HOUR_MS],
    online: ['', -HOUR_MS],
    game: ['Race', -DAY_MS]
  })
  t.match(await shown(nowEnd + 2 * HOUR_MS), { seen: ['online', 2 * HOUR_MS], game: ['Golf', 2 * HOUR_MS] })
  await model.insert(
    'scrape',
    ['source', 'ts', 'outcome'],
    [-HOUR_MS, HOUR_MS].map((ms) => ['players', time(minuteNow + ms), 'succeeded'])
  )
  t.same(await rowsOf(tables, newestPlayersCheck, { to: nowEnd }), [{ atMs: minuteNow - HOUR_MS }])
})
