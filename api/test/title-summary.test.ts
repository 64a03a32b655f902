import { deepStrictEqual } from 'node:assert'
import { newestSamples, runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import { titleSummary } from '../src/routes/title-summary.js'
import { ask } from './ask.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, within } from './plain-counts.js'
import { factsOf, iso, NOW_MS } from './samples.js'
import { catalogNaming, openStoredTables, time } from './stored-tables.js'

const HALO = '4d530064'
const RIDE = '55530036'
const catalog = catalogNaming({ [HALO]: 'Halo 2', [RIDE]: 'Ride' }, [HALO, RIDE])
const minuteNow = Math.floor(NOW_MS / MINUTE_MS) * MINUTE_MS
const LATEST = ['title_id', 'ts', 'online', 'sessions', 'lobby_players', 'version']
const nothing = {
  online: null,
  onlineAt: null,
  change24h: null,
  change7d: null,
  change30d: null,
  peak24h: null,
  peak: null,
  peakAt: null,
  rank: null,
  titles: 0,
  lobbies: null,
  lobbyPlayers: null
}

test('a title without data has null where a number is unknown, by its id and by its name', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  for (const titleId of [HALO, HALO.toUpperCase(), ' halo  2 ']) {
    t.same((await ask(titleSummary, { titleId }, needs)).body, { titleId: HALO, name: 'Halo 2', ...nothing })
  }
  await t.rejects(ask(titleSummary, { titleId: '00000001' }, needs), { code: 'title_unknown' })
  await t.rejects(ask(titleSummary, { titleId: 'Halo 3' }, needs), { code: 'game_unknown', message: /Halo 2/ })
})

test('a title that the newest scrape lacks has no number of now, and keeps its peaks', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  await model.insert('title_latest', LATEST, [
    [HALO, time(minuteNow - HOUR_MS), 7, 1, 2, '1'],
    [RIDE, time(minuteNow), 0, 0, null, '2']
  ])
  await model.storeTitles([{ key: HALO, ms: minuteNow - HOUR_MS, value: 7 }])
  t.same((await ask(titleSummary, { titleId: HALO }, needs)).body, {
    ...{ titleId: HALO, name: 'Halo 2', ...nothing },
    ...{ peak24h: 7, peak: 7, peakAt: iso(minuteNow - HOUR_MS), titles: 1 }
  })
  t.match((await ask(titleSummary, { titleId: RIDE }, needs)).body, {
    ...{ online: 0, onlineAt: iso(minuteNow), rank: 1, titles: 1, lobbies: 0, lobbyPlayers: null, peak: null }
  })
})

test('a change is against the nearest sample within 30 minutes, and equal titles share a rank', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  const ids = [HALO, RIDE, '00000001', '00000002']
  await model.insert(
    'title_latest',
    LATEST,
    [5, 5, 9, 1].map((online, n) => [ids[n] ?? '', time(minuteNow), online, 2, 3, String(n + 1)])
  )
  const at = (days: number, minutes: number, ms = 0) => minuteNow - days * DAY_MS + minutes * MINUTE_MS + ms
  await model.storeTitles(
    [
      [at(1, -10), 20],
      [at(1, 9), 3],
      [at(7, -30), 0],
      [at(30, 30, 1), 50]
    ].map(([ms = 0, value = 0]) => ({ key: HALO, ms, value }))
  )
  t.same((await ask(titleSummary, { titleId: HALO }, needs)).body, {
    titleId: HALO,
    name: 'Halo 2',
    online: 5,
    onlineAt: iso(minuteNow),
    change24h: 2,
    change7d: 5,
    change30d: null,
    peak24h: 3,
    peak: 50,
    peakAt: iso(at(30, 30, 1)),
    rank: 2,
    titles: 4,
    lobbies: 2,
    lobbyPlayers: 3
  })
})

test('changes and peaks equal those of plain loops over all samples', async (t) => {
  const model = await openStoredTables()
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS, catalog }
  await fc.assert(
    fc.asyncProperty(factsOf(HALO, RIDE), fc.integer({ min: 0, max: 12 * 24 * 4 }), async (facts, quarters) => {
      await model.clear()
      await model.storeTitles(facts)
      const countedMs = minuteNow - quarters * 15 * MINUTE_MS
      await model.insert('title_latest', LATEST, [[HALO, time(countedMs), 100, 1, 1, '1']])
      const samples = newestSamples(facts).filter(({ key, ms }) => key === HALO && ms < minuteNow + MINUTE_MS)
      const highest = (of: typeof samples) => of.toSorted((a, b) => b.value - a.value || a.ms - b.ms)[0]
      const change = (days: number) => {
        const wanted = countedMs - days * DAY_MS
        const distance = (ms: number) => Math.abs(Math.floor(ms / 1000) * 1000 - wanted)
        const [near] = samples
          .filter(({ ms }) => Math.abs(ms - wanted) <= 30 * MINUTE_MS)
          .sort((a, b) => distance(a.ms) - distance(b.ms) || a.ms - b.ms)
        return near === undefined ? null : 100 - near.value
      }
      const { body } = await ask(titleSummary, { titleId: HALO }, needs)
      const { change24h, change7d, change30d, peak24h, peak, peakAt } = body as Record<string, unknown>
      const top = highest(samples)
      deepStrictEqual(
        { change24h, change7d, change30d, peak24h, peak, peakAt },
        {
          change24h: change(1),
          change7d: change(7),
          change30d: change(30),
          peak24h: highest(within(samples, minuteNow - DAY_MS, NOW_MS + MINUTE_MS))?.value ?? null,
          peak: top?.value ?? null,
          peakAt: top === undefined ? null : iso(top.ms)
        }
      )
    }),
    runs(4)
  )
  t.pass()
})
