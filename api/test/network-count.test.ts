import { deepStrictEqual } from 'node:assert'
import { newestSamples, rollupsOf, runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import {
  activitySummary,
  dailyOnline,
  lobbyHistory,
  onlineHistory,
  registeredUsers
} from '../src/routes/network-count.js'
import { ask } from './ask.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, rounded, seriesOf, within } from './plain-counts.js'
import { factsOf, iso, NOW_MS, resolutions, windowMs } from './samples.js'
import { openStoredTables } from './stored-tables.js'

const anyFacts = factsOf('registered', 'online', 'lobbies')
const DAYS = fc.constantFrom(1, 2, 7, 12, 30)
const minuteNow = Math.floor(NOW_MS / MINUTE_MS) * MINUTE_MS
const todayMs = Math.floor(NOW_MS / DAY_MS) * DAY_MS
const date = (ms: number) => iso(ms).slice(0, 10)

/** The width of an answer without `resolution`, according to the contract. */
function usualWidth(fromMs: number, toMs: number, spanMs: number): number {
  if (spanMs <= DAY_MS) return 0
  const buckets = (width: number) => Math.floor((toMs - 1) / (width * 1000)) - Math.floor(fromMs / (width * 1000)) + 1
  return [300, 900, 3600, 21_600, 86_400].find((width) => buckets(width) <= 2000) ?? 604_800
}

test('online users and lobbies over any window are the samples, or the peak of each bucket', async (t) => {
  const model = await openStoredTables()
  const tables = model.clickhouse.readers
  await fc.assert(
    fc.asyncProperty(anyFacts, windowMs, resolutions, async (facts, { fromMs, toMs }, resolution) => {
      await model.clear()
      await model.storeNetwork(facts)
      for (const [endpoint, metric, column] of [
        [onlineHistory, 'online', 'online_count'],
        [lobbyHistory, 'lobbies', 'lobby_count']
      ] as const) {
        const { body, headers } = await ask(
          endpoint,
          { from: iso(fromMs), to: iso(toMs), resolution },
          { tables, nowMs: NOW_MS }
        )
        const width =
          resolution === undefined
            ? usualWidth(fromMs, toMs, toMs - fromMs)
            : resolution === 'raw'
              ? 0
              : Number(resolution)
        const samples = within(newestSamples(facts), fromMs, toMs).filter(({ key }) => key === metric)
        deepStrictEqual(body, seriesOf(samples, width, column))
        deepStrictEqual(headers, { 'X-Resolution-Seconds': String(width) })
      }
    }),
    runs(6)
  )
  t.pass()
})

test('a bucket of a week begins on a Monday; the first week of 1970 has no Monday', async (t) => {
  const model = await openStoredTables()
  const values = ['1970-01-01', '1970-01-04', '1970-01-05', '2105-12-27', '2105-12-28']
  await model.storeNetwork(values.map((date, value) => ({ key: 'online', ms: Date.parse(date), value })))
  const whole = { from: '1970-01-01T00:00:00Z', to: '2105-12-29T00:00:00Z', resolution: '604800' }
  const { body } = await ask(onlineHistory, whole, { tables: model.clickhouse.readers, nowMs: NOW_MS })
  t.match(body, [
    { recorded_at: '1970-01-01 00:00:00', online_count: 1, samples: 2 },
    { recorded_at: '1970-01-05 00:00:00', online_count: 2, samples: 1 },
    { recorded_at: '2105-12-21 00:00:00', online_count: 3, samples: 1 },
    { recorded_at: '2105-12-28 00:00:00', online_count: 4, samples: 1 }
  ])
})

test('the last days of online users start at the floored minute and hold the current minute', async (t) => {
  const model = await openStoredTables()
  const tables = model.clickhouse.readers
  await fc.assert(
    fc.asyncProperty(anyFacts, fc.option(DAYS, { nil: undefined }), async (facts, days) => {
      await model.clear()
      await model.storeNetwork(facts)
      const { body } = await ask(onlineHistory, { days: days?.toString() }, { tables, nowMs: NOW_MS })
      const spanMs = (days ?? 1) * DAY_MS
      const [fromMs, toMs] = [minuteNow - spanMs, minuteNow + MINUTE_MS]
      const samples = within(newestSamples(facts), fromMs, toMs).filter(({ key }) => key === 'online')
      deepStrictEqual(body, seriesOf(samples, usualWidth(fromMs, toMs, spanMs), 'online_count'))
    }),
    runs(3)
  )
  t.pass()
})

test('registered users are the last count of each UTC day that has one, today included', async (t) => {
  const model = await openStoredTables()
  const tables = model.clickhouse.readers
  await fc.assert(
    fc.asyncProperty(anyFacts, fc.option(DAYS, { nil: undefined }), async (facts, days) => {
      await model.clear()
      await model.storeNetwork(facts)
      const { body } = await ask(registeredUsers, { days: days?.toString() }, { tables, nowMs: NOW_MS })
      const fromMs = todayMs - ((days ?? 30) - 1) * DAY_MS
      const samples = within(newestSamples(facts), fromMs, minuteNow + MINUTE_MS).filter(
        ({ key }) => key === 'registered'
      )
      const expected = rollupsOf(samples, DAY_MS).map((day) => ({ date: date(day.fromMs), registered_count: day.last }))
      deepStrictEqual(body, expected)
    }),
    runs(3)
  )
  t.pass()
})

test('a day of online users has its extremes, mean, samples and the share of hours that are covered', async (t) => {
  const model = await openStoredTables()
  const tables = model.clickhouse.readers
  const someDays = fc
    .tuple(fc.integer({ min: 0, max: 14 }), fc.integer({ min: 1, max: 14 }))
    .map(([first, days]) => ({ fromMs: todayMs - (14 - first) * DAY_MS, days }))
  await fc.assert(
    fc.asyncProperty(anyFacts, fc.oneof(DAYS, someDays), async (facts, dayCount) => {
      await model.clear()
      await model.storeNetwork(facts)
      const fromMs = typeof dayCount === 'number' ? todayMs - (dayCount - 1) * DAY_MS : dayCount.fromMs
      const toMs = typeof dayCount === 'number' ? todayMs + DAY_MS : dayCount.fromMs + dayCount.days * DAY_MS
      const given = typeof dayCount === 'number' ? { days: String(dayCount) } : { from: iso(fromMs), to: iso(toMs) }
      const { body } = await ask(dailyOnline, given, { tables, nowMs: NOW_MS })
      const ended = Math.min(toMs, minuteNow + MINUTE_MS)
      const samples = within(newestSamples(facts), fromMs, ended).filter(({ key }) => key === 'online')
      const expected = rollupsOf(samples, DAY_MS).map((day) => {
        const hours = rollupsOf(within(samples, day.fromMs, day.fromMs + DAY_MS), HOUR_MS).length
        const begun = day.fromMs === todayMs ? 14 : 24
        return {
          date: date(day.fromMs),
          min_online: day.min,
          max_online: day.max,
          avg_online: rounded(day.sum, BigInt(day.samples), 1),
          samples: day.samples,
          coverage: rounded(BigInt(hours), BigInt(begun), 3)
        }
      })
      deepStrictEqual(body, expected)
    }),
    runs(4)
  )
  t.pass()
})

test('the summary has the first instant of each peak and counts instants, not rows', async (t) => {
  const model = await openStoredTables()
  const tables = model.clickhouse.readers
  await fc.assert(
    fc.asyncProperty(anyFacts, fc.constantFrom('today', '7d', undefined), async (facts, period) => {
      await model.clear()
      await model.storeNetwork(facts)
      const { body } = await ask(activitySummary, { period }, { tables, nowMs: NOW_MS })
      const samples = within(
        newestSamples(facts),
        minuteNow - (period === '7d' ? 168 : 24) * HOUR_MS,
        minuteNow + MINUTE_MS
      )
      const peak = (metric: string) => {
        const [top] = samples.filter(({ key }) => key === metric).sort((a, b) => b.value - a.value || a.ms - b.ms)
        return top
      }
      const [online, lobbies] = [peak('online'), peak('lobbies')]
      deepStrictEqual(body, {
        period: period ?? 'today',
        peakOnline: online?.value ?? 0,
        peakOnlineAt: online === undefined ? null : iso(online.ms),
        peakLobbies: lobbies?.value ?? 0,
        peakLobbiesAt: lobbies === undefined ? null : iso(lobbies.ms),
        mostPlayedGame: null,
        gamesWithActivityCount: 0,
        onlineSampleCount: samples.filter(({ key }) => key === 'online').length,
        lobbySampleCount: samples.filter(({ key }) => key === 'lobbies').length,
        totalSnapshotCount: new Set(samples.map(({ ms }) => ms)).size
      })
    }),
    runs(4)
  )
  t.pass()
})

test('days that are requested by from and to begin and end with a UTC day', async (t) => {
  const refused = async (given: Record<string, string>, sentence: RegExp) => {
    const resolving = async () =>
      dailyOnline.resolve(dailyOnline.input.parse(given), { nowMs: NOW_MS, openListAgeMs: 0, catalog: notQueried })
    await t.rejects(resolving(), { status: 400, message: sentence }, JSON.stringify(given))
  }
  await refused({ from: '2026-01-01T00:00:01Z' }, /from must be a UTC day or its start.*got 2026-01-01T00:00:01\.000Z/)
  await refused({ from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00.001Z' }, /to must be a UTC day or its start/)
  await refused({ from: '2026-01-01T00:00:00+01:00' }, /from must be a UTC day or its start/)
  await refused({ to: '2026-01-01T00:00:00Z' }, /to needs from/)
  await refused({ from: '2026-01-01T00:00:00Z', to: '2026-01-01T00:00:00Z' }, /from must be before to/)
  await refused({ from: '2026-01-01T00:00:00Z', days: '3' }, /days cannot be given together with from/)
  const resolve = (given: Record<string, string>, nowMs = NOW_MS) =>
    dailyOnline.resolve(dailyOnline.input.parse(given), { nowMs, openListAgeMs: 0, catalog: notQueried })
  t.same(
    await resolve({ from: '2026-01-01T02:00:00+02:00' }),
    { fromMs: Date.UTC(2026, 0, 1), toMs: minuteNow + MINUTE_MS },
    'from alone goes on to now; an offset is as good as Z'
  )
  t.same(
    await resolve({ from: '2026-01-01T00:00:00Z', to: '2026-01-03T00:00:00Z' }),
    await resolve({ from: '2026-01-01T00:00:00Z', to: '2026-01-03T00:00:00Z' }, NOW_MS + 99 * DAY_MS),
    'days that are over do not depend on the clock'
  )
})

test('the dependencies of an answer list every projection and range that it reads', async (t) => {
  const resolved = await onlineHistory.resolve(onlineHistory.input.parse({ days: '30' }), {
    nowMs: NOW_MS,
    openListAgeMs: 0,
    catalog: notQueried
  })
  const [fromMs, toMs] = [minuteNow - 30 * DAY_MS, minuteNow + MINUTE_MS]
  t.equal(resolved.widthSeconds, 3600)
  t.same(onlineHistory.reads(resolved), [
    { projection: 'network-count', fromMs, toMs: fromMs + 23 * MINUTE_MS },
    { projection: 'network-count', fromMs: toMs - 38 * MINUTE_MS, toMs },
    { projection: 'network-count-hour', fromMs: fromMs + 23 * MINUTE_MS, toMs: toMs - 38 * MINUTE_MS }
  ])
  const raw = await onlineHistory.resolve(onlineHistory.input.parse({}), {
    nowMs: NOW_MS,
    openListAgeMs: 0,
    catalog: notQueried
  })
  t.same(onlineHistory.reads(raw), [{ projection: 'network-count', fromMs: minuteNow - DAY_MS, toMs }])
})

test('a series of more than a million points is refused by a resolution that fits', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS }
  const from = Date.UTC(2010, 0, 1)
  const fill = (offset: number, count: number) =>
    model.clickhouse.loader.execute(
      `INSERT INTO network_count__0 SELECT 'online', toDateTime64(${from / 1000} + (number + ${offset}) * 60, 3, 'UTC'), 1, number + 1 FROM numbers(${count})`
    )
  await fill(0, 1_000_000)
  const window = { from: iso(from), to: '2012-01-01T00:00:00Z' }
  const whole = await ask(onlineHistory, { ...window, resolution: 'raw' }, needs)
  t.equal(Array.isArray(whole.body) && whole.body.length, 1_000_000, 'a million is answered')
  await fill(1_000_000, 1)
  await t.rejects(ask(onlineHistory, { ...window, resolution: 'raw' }, needs), {
    status: 400,
    message: /resolution=raw gives more than 1000000 points in this window; resolution=300 fits/
  })
  await t.rejects(ask(onlineHistory, { ...window, resolution: '60' }, needs), {
    status: 400,
    message: /resolution=300 fits/
  })
  const empty = { from: '2020-01-01T00:00:00Z', to: '2025-01-01T00:00:00Z' }
  t.same((await ask(onlineHistory, { ...empty, resolution: 'raw' }, needs)).body, [], 'nothing is not too much')
  t.same((await ask(onlineHistory, { ...empty, resolution: '60' }, needs)).body, [], 'nor is a wide window of nothing')
})

const notQueried = async (): Promise<never> => {
  throw new Error('the catalog is not needed here')
}
