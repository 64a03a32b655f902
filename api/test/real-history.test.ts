import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import type { Sample } from '@gamenet/engines/testing'
import { test } from 'tap'
import { dailyOnline, onlineHistory } from '../src/routes/network-count.js'
import { ask } from './ask.js'
import { DAY_MS, HOUR_MS, second, seriesOf } from './plain-counts.js'
import { openStoredTables } from './stored-tables.js'

const FILE = new URL('../../../../shared/data/online-hourly-2017-2026.csv.gz', import.meta.url)
const NOW_MS = Date.UTC(2026, 2, 15, 12)
const FIRST_MS = Date.UTC(2017, 1, 17, 6)
const HOURS = 79_506

/** Nine years of hours with missing hours, missing days and written zeros: recorded ones, or similar ones. */
async function history(
  say: (sentence: string) => void
): Promise<{ facts: Sample[]; highest: number; zeros: number; gapDays: number }> {
  if (existsSync(FILE)) {
    const lines = gunzipSync(await readFile(FILE))
      .toString('utf8')
      .trim()
      .split('\n')
      .slice(1)
    const facts = lines.flatMap((line) => {
      const [at = '', count = ''] = line.trim().split(',')
      return count === ''
        ? []
        : [{ key: 'online', ms: Date.parse(`${at.slice(0, 19).replace(' ', 'T')}Z`), value: Number(count) }]
    })
    return { facts, highest: 216_762, zeros: 111, gapDays: 6 }
  }
  say('../shared/data is absent: a made-up history of the same length takes the place of the real one')
  const facts: Sample[] = []
  for (let hour = 0; hour < HOURS; hour += 1) {
    const ms = FIRST_MS + hour * HOUR_MS
    const day = Math.floor(ms / DAY_MS)
    const isMissing = day % 601 === 0 || hour % 997 === 0
    if (!isMissing)
      facts.push({ key: 'online', ms, value: hour >= 40_000 && hour < 40_111 ? 0 : 1 + ((hour * 7919) % 200_000) })
  }
  const days = new Set(facts.map(({ ms }) => Math.floor(ms / DAY_MS)))
  return {
    facts,
    highest: Math.max(...facts.map(({ value }) => value)),
    zeros: facts.filter(({ value }) => value === 0).length,
    gapDays: Math.ceil((HOURS * HOUR_MS + (FIRST_MS % DAY_MS)) / DAY_MS) - days.size
  }
}

test('nine years of hours can be requested as a day, a year and a whole, and missing hours stay missing', async (t) => {
  const { facts, highest, zeros, gapDays } = await history((sentence) => t.comment(sentence))
  const model = await openStoredTables()
  await model.storeNetwork(facts)
  const needs = { tables: model.clickhouse.readers, nowMs: NOW_MS }
  const series = async (from: string, to: string, resolution?: string) => {
    const { body, headers } = await ask(onlineHistory, { from, to, resolution }, needs)
    const points = body as { recorded_at: string; online_count: number }[]
    return { width: headers['X-Resolution-Seconds'], points }
  }
  const between = (from: string, to: string) => facts.filter(({ ms }) => Date.parse(from) <= ms && ms < Date.parse(to))

  const day = ['2021-06-20T00:00:00Z', '2021-06-21T00:00:00Z'] as const
  t.same(await series(...day), { width: '0', points: seriesOf(between(...day), 0, 'online_count') })
  const year = ['2020-01-01T00:00:00Z', '2021-01-01T00:00:00Z'] as const
  t.same(await series(...year), { width: '21600', points: seriesOf(between(...year), 21_600, 'online_count') })
  const all = ['2017-01-01T00:00:00Z', '2026-03-15T00:00:00Z'] as const
  const whole = await series(...all)
  t.same(whole, { width: '604800', points: seriesOf(facts, 604_800, 'online_count') })
  t.same(
    new Set(whole.points.map((point) => new Date(`${point.recorded_at.replace(' ', 'T')}Z`).getUTCDay())),
    new Set([1])
  )
  t.equal(Math.max(...whole.points.map(({ online_count }) => online_count)), highest)
  const raw = await series(...all, 'raw')
  t.same(
    raw.points,
    facts.map(({ ms, value }) => ({ recorded_at: second(ms), online_count: value }))
  )

  const { body } = await ask(dailyOnline, { from: '2017-02-17T00:00:00Z', to: '2026-03-15T00:00:00Z' }, needs)
  const rows = body as { date: string; min_online: number; samples: number; coverage: number }[]
  t.equal(
    rows.length,
    (Date.UTC(2026, 2, 15) - Date.UTC(2017, 1, 17)) / DAY_MS - gapDays,
    'a day without a sample has no row'
  )
  t.equal(
    rows.reduce((sum, row) => sum + row.samples, 0),
    facts.length
  )
  t.same(
    rows.filter(({ coverage, samples }) => coverage !== Math.round((samples / 24) * 1000) / 1000),
    [],
    'hourly samples cover as many hours as there are samples'
  )
  t.equal(raw.points.filter(({ online_count }) => online_count === 0).length, zeros, 'written zeros stay')
})
