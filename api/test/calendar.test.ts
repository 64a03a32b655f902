import { deepStrictEqual, ok } from 'node:assert'
import { newestSamples, rollupsOf, runs, type Sample } from '@gamenet/engines/testing'
import { type Calendar, type HourMatrix, PERIODS, type Period, type TitleRanks } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { hasWholeHours, zoneNamed } from '../src/queries/time-zone.js'
import { calendar, hoursOfWeek, peaks, titleRanks } from '../src/routes/calendar.js'
import { collectorStatus, coverage } from '../src/routes/coverage.js'
import { ask } from './ask.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, rounded, statisticsOf } from './plain-counts.js'
import { iso } from './samples.js'
import { catalogNaming, openStoredTables, time } from './stored-tables.js'

const NOW_MS = Date.UTC(2025, 11, 10, 13, 37)
const ALPHA = '4d530001'
const BETA = '4d530002'
const GAMMA = '4d530003'
const IDS = [ALPHA, BETA, GAMMA]
const catalog = catalogNaming({ [ALPHA]: 'alpha', [BETA]: 'beta', [GAMMA]: 'gamma' })
/** Clocks change by an hour, by half an hour, or never; offsets are whole hours, or not. */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'America/St_Johns',
  'Pacific/Auckland'
]
const CHANGES_MS = [
  Date.UTC(2025, 2, 30, 1),
  Date.UTC(2025, 9, 26, 1),
  Date.UTC(2025, 2, 9, 7),
  Date.UTC(2025, 10, 2, 6),
  Date.UTC(2025, 3, 5, 15),
  Date.UTC(2024, 9, 5, 15, 30),
  Date.UTC(2024, 11, 31, 23)
]

const instantMs = fc
  .tuple(fc.constantFrom(...CHANGES_MS), fc.integer({ min: -36 * 60, max: 36 * 60 }))
  .map(([ms, minutes]) => ms + minutes * MINUTE_MS)
const factsOf = (...keys: string[]) =>
  fc.array(fc.record({ key: fc.constantFrom(...keys), ms: instantMs, value: fc.integer({ min: 0, max: 9999 }) }), {
    maxLength: 120
  })
const days = fc.constantFrom<{ from?: string; to?: string }>(
  {},
  { from: '2025-03-30', to: '2025-11-02' },
  { from: '2025-01-01' },
  { from: '2024-10-06', to: '2025-10-27' },
  { to: '2025-03-31' }
)

/** The wall clock of an instant. */
function localOf(tz: string, ms: number) {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: tz,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    hourCycle: 'h23'
  }).formatToParts(ms)
  const part = (name: string) => parts.find(({ type }) => type === name)?.value ?? ''
  const date = `${part('year')}-${part('month')}-${part('day')}`
  return { date, hour: Number(part('hour')), weekday: ((new Date(date).getUTCDay() + 6) % 7) + 1 }
}

const later = (date: string, by: number) => iso(Date.parse(date) + by * DAY_MS).slice(0, 10)

function periodOf(date: string, every: Period): string {
  if (every === 'week') return later(date, -((new Date(date).getUTCDay() + 6) % 7))
  return every === 'day' ? date : every === 'month' ? `${date.slice(0, 7)}-01` : `${date.slice(0, 4)}-01-01`
}

const within =
  (tz: string, { from = '', to = '9' }: { from?: string; to?: string }) =>
  (fact: Sample) => {
    const { date } = localOf(tz, fact.ms)
    return from <= date && date < to
  }

/** Whether the period of a sample touches a window. */
const touching =
  (tz: string, every: Period, { from, to = '9' }: { from?: string; to?: string }) =>
  (fact: Sample) => {
    const period = periodOf(localOf(tz, fact.ms).date, every)
    return (from === undefined || periodOf(from, every) <= period) && period < to
  }

/** The samples of each (key, period), summed. */
function sumsOf(samples: readonly Sample[], tz: string, every: Period) {
  const groups = new Map<string, Sample[]>()
  for (const fact of samples) {
    const group = `${fact.key} ${periodOf(localOf(tz, fact.ms).date, every)}`
    groups.set(group, [...(groups.get(group) ?? []), fact])
  }
  return new Map(
    [...groups].flatMap(([group, facts]) =>
      rollupsOf(facts, Number.MAX_SAFE_INTEGER).map((sum): [string, typeof sum] => [group, sum])
    )
  )
}

test('periods of any zone equal a plain fold of the samples, across changes of the clock', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const asked = fc.record({ tz: fc.constantFrom(...ZONES), every: fc.constantFrom(...PERIODS), window: days })
  await fc.assert(
    fc.asyncProperty(factsOf(...IDS), factsOf('online'), asked, async (titles, network, { tz, every, window }) => {
      await model.clear()
      await model.storeTitles(titles)
      await model.storeNetwork(network)
      const { body } = await ask(calendar, { titleIds: `${BETA},${ALPHA}`, tz, every, ...window }, needs)
      const all = sumsOf(newestSamples(titles), tz, every)
      const online = sumsOf(newestSamples(network).filter(touching(tz, every, window)), tz, every)
      const expected = [...sumsOf(newestSamples(titles).filter(touching(tz, every, window)), tz, every)].flatMap(
        ([group, sum]) => {
          const [key = '', date = ''] = group.split(' ')
          if (key === GAMMA) return []
          return [{ date, titleId: key, peak: sum.max, peakAt: iso(sum.maxAtMs), ...statisticsOf(sum) }]
        }
      )
      expected.sort((a, b) =>
        a.date === b.date ? IDS.indexOf(b.titleId) - IDS.indexOf(a.titleId) : a.date < b.date ? -1 : 1
      )
      const periods = body as Calendar
      deepStrictEqual(
        periods.map(({ date, titleId, peak, peakAt, min, average, samples }) => ({
          date,
          titleId,
          peak,
          peakAt,
          min,
          average,
          samples
        })),
        expected
      )
      for (const { date, titleId, share, yearBefore } of periods) {
        const whole = online.get(`online ${date}`)
        const own = expected.find((each) => each.date === date && each.titleId === titleId)
        if (whole === undefined || whole.sum === 0n) ok(share === null)
        else
          ok(
            Math.abs((share ?? 0) - (own?.average ?? 0) / (Number(whole.sum) / whole.samples)) <=
              0.0001 + 0.06 / (Number(whole.sum) / whole.samples)
          )
        const before = every === 'week' ? later(date, -364) : `${Number(date.slice(0, 4)) - 1}${date.slice(4)}`
        const sum = all.get(`${titleId} ${before}`)
        deepStrictEqual(yearBefore, sum === undefined ? null : rounded(sum.sum, BigInt(sum.samples), 1))
      }
    }),
    runs(14)
  )
  t.pass()
})

test('gain, rolling mean and the year before refer to calendar periods, not to rows', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const at = (year: number, month: number) => Date.UTC(year, month - 1, 15)
  await model.storeTitles([
    { key: ALPHA, ms: at(2024, 6), value: 10 },
    { key: ALPHA, ms: at(2025, 4), value: 30 },
    { key: ALPHA, ms: at(2025, 5), value: 0 },
    { key: ALPHA, ms: at(2025, 6), value: 40 },
    { key: ALPHA, ms: at(2025, 6) + 1, value: 50 },
    { key: ALPHA, ms: at(2025, 8), value: 7 }
  ])
  const { body } = await ask(calendar, { titleIds: ALPHA, from: '2025-05-01', rolling: '3' }, needs)
  t.same(
    (body as Calendar).map(({ date, average, gain, gainPercent, yearBefore, rolling, share }) => [
      date,
      average,
      gain,
      gainPercent,
      yearBefore,
      rolling,
      share
    ]),
    [
      ['2025-05-01', 0, -30, -100, null, 15, null],
      ['2025-06-01', 45, 45, null, 10, 30, null],
      ['2025-08-01', 7, null, null, null, 32.3, null]
    ]
  )
  const network = await ask(calendar, { metric: 'lobbies' }, needs)
  t.same(network.body, [])
  for (const [given, message] of [
    [{ tz: 'Mars/Olympus' }, /tz must be the name of an IANA time zone.*got "Mars\/Olympus"/],
    [{ tz: '+05:30' }, /tz/],
    [{ tz: '' }, /tz/],
    [{ from: '2025-02-30' }, /from must be a day/],
    [{ from: '2025-03-01T00:00:00Z' }, /from/],
    [{ from: '2025-03-01', to: '2025-03-01' }, /from must be before to/],
    [{ titleIds: '4d530001,' }, /titleIds/],
    [{ rolling: '1' }, /rolling/]
  ] as const) {
    await t.rejects(ask(calendar, given, needs), { status: 400, message }, JSON.stringify(given))
  }
  await t.rejects(ask(calendar, { titleIds: '4d53ffff' }, needs), { status: 404, message: /4d53ffff/ })
})

test('the hours of the week are means of weekly means, across changes of the clock', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  await fc.assert(
    fc.asyncProperty(factsOf(ALPHA, BETA), fc.constantFrom(...ZONES), days, async (facts, tz, window) => {
      await model.clear()
      await model.storeTitles(facts)
      const { body } = await ask(hoursOfWeek, { titleId: ALPHA, tz, ...window }, needs)
      const weeks = new Map<string, Map<string, number[]>>()
      for (const { ms, value } of newestSamples(facts).filter(
        (fact) => fact.key === ALPHA && within(tz, window)(fact)
      )) {
        const { date, hour, weekday } = localOf(tz, ms)
        const ofHour = weeks.get(`${weekday} ${hour}`) ?? new Map<string, number[]>()
        weeks.set(`${weekday} ${hour}`, ofHour)
        const week = periodOf(date, 'week')
        ofHour.set(week, [...(ofHour.get(week) ?? []), value])
      }
      const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
      const matrix = body as HourMatrix
      deepStrictEqual(matrix.length, weeks.size)
      for (const { weekday, hour, average, spread, lowest, highest, weeks: counted } of matrix) {
        const means = [...(weeks.get(`${weekday} ${hour}`)?.values() ?? [])].map(mean)
        const deviation = Math.sqrt(mean(means.map((each) => (each - mean(means)) ** 2)))
        for (const [got, expected] of [
          [average, mean(means)],
          [spread, deviation],
          [lowest, Math.min(...means)],
          [highest, Math.max(...means)],
          [counted, means.length]
        ] as const) {
          ok(Math.abs(got - expected) <= 0.05 + 1e-6, `${weekday} ${hour}: ${got} ${expected}`)
        }
      }
    }),
    runs(8)
  )
  t.pass()
})

test('a title ranks behind those with a higher mean, and peaks are of the whole history', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  await fc.assert(
    fc.asyncProperty(
      factsOf(...IDS),
      fc.constantFrom(...ZONES),
      fc.constantFrom(...PERIODS),
      async (facts, tz, every) => {
        await model.clear()
        await model.storeTitles(facts)
        const sums = [...sumsOf(newestSamples(facts), tz, every)]
        const expected = sums
          .filter(([group]) => group.startsWith(ALPHA))
          .map(([group, sum]) => {
            const date = group.slice(9)
            const ofPeriod = sums
              .filter(([each]) => each.endsWith(date))
              .map(([, each]) => Number(each.sum) / each.samples)
            const own = Number(sum.sum) / sum.samples
            const { average } = statisticsOf(sum)
            return { date, rank: 1 + ofPeriod.filter((each) => each > own).length, titles: ofPeriod.length, average }
          })
          .sort((a, b) => (a.date < b.date ? -1 : 1))
        deepStrictEqual((await ask(titleRanks, { titleId: ALPHA, tz, every }, needs)).body as TitleRanks, expected)
      }
    ),
    runs(8)
  )
  await model.clear()
  await model.storeTitles([
    { key: ALPHA, ms: NOW_MS - 400 * DAY_MS, value: 3 },
    { key: ALPHA, ms: NOW_MS, value: 3 },
    { key: BETA, ms: NOW_MS, value: 9 }
  ])
  await model.storeNetwork([{ key: 'online', ms: NOW_MS - HOUR_MS, value: 50 }])
  t.match((await ask(peaks, {}, needs)).body, [
    { titleId: null, name: 'online', peak: 50 },
    { titleId: BETA, name: 'beta', peak: 9 },
    {
      titleId: ALPHA,
      name: 'alpha',
      peak: 3,
      peakAt: iso(NOW_MS - 400 * DAY_MS),
      average: 3,
      samples: 2,
      lastDay: '2025-12-10'
    }
  ])
})

test('zones are accepted by their names in any case, and divided by whole hours of UTC', (t) => {
  t.equal(zoneNamed('europe/berlin'), 'Europe/Berlin')
  t.equal(zoneNamed('utc'), 'UTC')
  for (const name of ['', '+05:30', 'Berlin', "UTC'; DROP", '../etc/passwd', 'systemv/PST8PDT'])
    t.equal(zoneNamed(name), undefined, name)
  t.same(
    ZONES.filter((tz) => !hasWholeHours(tz)),
    ['Asia/Kolkata', 'Australia/Lord_Howe', 'America/St_Johns']
  )
  t.end()
})

test('a zone that Node knows and the engine does not is a fault of the request', async (t) => {
  const model = await openStoredTables()
  const tz = 'America/Lima'
  const { readers } = model.clickhouse
  const rows: typeof readers.rows = (sql, parameters, ...rest) => readers.rows(sql, unknownFor(tz, parameters), ...rest)
  const needs = { tables: { ...readers, rows }, nowMs: NOW_MS, catalog }
  for (const asked of [() => ask(calendar, { tz }, needs), () => ask(hoursOfWeek, { tz }, needs)])
    await t.rejects(asked, { status: 400, message: /^tz is .* do not know/ })
})

/** Names a zone that the engine does not know; which ones that are differs between machines. */
function unknownFor<Parameters extends Readonly<Record<string, unknown>> | undefined>(tz: string, given: Parameters) {
  const changed = Object.entries(given ?? {}).map(([name, value]) => [name, value === tz ? `${tz}/none` : value])
  return Object.fromEntries(changed) as Parameters
}

test('the collector was blind when a source was silent for longer than usual', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  t.same((await ask(coverage, {}, needs)).body, [])
  t.same((await ask(collectorStatus, {}, needs)).body, { history: null, sources: [] })
  t.match((await ask(collectorStatus, {}, { ...needs, historyPercent: 47 })).body, { history: { percent: 47 } })
  const columns = ['source', 'ts', 'duration_ms', 'outcome', 'published', 'reason', 'position']
  const run = (source: string, minutes: number, outcome = 'succeeded') => [
    source,
    time(NOW_MS - minutes * MINUTE_MS),
    1,
    outcome,
    0,
    '',
    1
  ]
  await model.insert('scrape', columns, [
    ...[600, 540, 480, 120, 60, 0].map((minutes) => run('games', minutes)),
    ...[40, 39, 38, 37, 3, 2, 1].map((minutes) => run('network', minutes)),
    run('network', 20, 'failed'),
    ...[90, 89, 88].map((minutes) => run('matches', minutes, 'partial')),
    run('matches', 5, 'failed'),
    run('boards', 5, 'failed'),
    run('players', 60 * 24 * 60)
  ])
  await model.storeNetwork([0, 1, 2, 8].map((hours) => ({ key: 'online', ms: NOW_MS - hours * HOUR_MS, value: 1 })))
  const gap = (source: string, from: number, to: number | null) => ({
    source,
    from: iso(NOW_MS - from * MINUTE_MS),
    to: to === null ? null : iso(NOW_MS - to * MINUTE_MS),
    seconds: (from - (to ?? -1)) * 60
  })
  const found = [
    { source: 'counts', from: iso(Date.UTC(2025, 11, 10, 5)), to: iso(Date.UTC(2025, 11, 10, 11)), seconds: 21_600 },
    gap('games', 480, 120),
    gap('matches', 88, null),
    gap('network', 37, 3),
    // Longer than the look-back: the last success counts.
    gap('players', 60 * 24 * 60, null)
  ]
  t.same((await ask(coverage, {}, needs)).body, found)
  const window = { from: iso(NOW_MS - 100 * MINUTE_MS), to: iso(NOW_MS - 50 * MINUTE_MS) }
  t.same((await ask(coverage, window, needs)).body, [
    { ...gap('matches', 88, null), seconds: 38 * 60 },
    { ...gap('players', 60 * 24 * 60, null), seconds: (60 * 24 * 60 - 50) * 60 }
  ])
  const within = { from: iso(NOW_MS - 400 * MINUTE_MS), to: iso(NOW_MS - 300 * MINUTE_MS) }
  t.same((await ask(coverage, within, needs)).body, [
    gap('games', 480, 120),
    { ...gap('players', 60 * 24 * 60, null), seconds: (60 * 24 * 60 - 300) * 60 }
  ])
  t.match((await ask(collectorStatus, {}, needs)).body, {
    sources: [
      { source: 'boards', lastSuccessAt: null, ageSeconds: null, lastOutcome: 'failed', gaps: 0, gapSeconds: 0 },
      { source: 'counts', ageSeconds: 60, gaps: 1, gapSeconds: 21_600 },
      { source: 'games', lastSuccessAt: iso(NOW_MS), ageSeconds: 60, lastOutcome: 'succeeded', gaps: 1 },
      { source: 'matches', ageSeconds: 89 * 60, lastOutcome: 'failed', gaps: 1, gapSeconds: 89 * 60 },
      { source: 'network', ageSeconds: 120, gaps: 1, gapSeconds: 34 * 60 }
    ]
  })
})

test('a healthy service has no gaps, from its first minute on; a source that stops has one after three periods', async (t) => {
  const model = await openStoredTables()
  await model.clear()
  await model.empty(['scrape'])
  const periodSeconds = { network: 60, games: 3600, matches: 60, boards: 300, players: 60 }
  const startMs = Math.floor(NOW_MS / HOUR_MS) * HOUR_MS + 5 * MINUTE_MS
  // Boards choose their steps themselves.
  const runs = [
    ...Array.from({ length: 60 }, (_, minute) => ['network', minute] as const),
    ...[0, 60, 120].map((minute) => ['games', minute] as const),
    ...[0, 5, 10, 15, 300].map((minute) => ['boards', minute] as const)
  ]
  const stored = runs.map(([source, minute]) => [source, time(startMs + minute * MINUTE_MS), 'succeeded'])
  await model.insert('scrape', ['source', 'ts', 'outcome'], stored)
  await model.storeNetwork(
    Array.from({ length: 60 }, (_, minute) => ({ key: 'online', ms: startMs + minute * MINUTE_MS, value: 5 }))
  )
  const at = async (minute: number) => {
    const needs = { tables: model.clickhouse.readers, nowMs: startMs + minute * MINUTE_MS, catalog, periodSeconds }
    const found = (await ask(coverage, {}, needs)).body as { source: string }[]
    const { sources } = (await ask(collectorStatus, {}, needs)).body as { sources: { source: string; gaps: number }[] }
    const sum = sources.filter(({ gaps }) => gaps > 0).map(({ source }) => source)
    t.same(sum, [...new Set(found.map(({ source }) => source))], `minute ${minute}`)
    return sum
  }
  for (const minute of [0, 1, 4, 6, 9, 10, 11, 20, 30, 59, 61, 68]) t.same(await at(minute), [], `minute ${minute}`)
  t.same(await at(75), ['network'], 'it stopped in minute 59')
  t.same(await at(290), ['counts', 'network'], 'boards rest, games are due')
  t.same(await at(310), ['counts', 'games', 'network'])
  t.same(await at(24 * 60), ['counts', 'games', 'network'])
  t.same(await at(50 * 60), ['boards', 'counts', 'games', 'network'])
})
