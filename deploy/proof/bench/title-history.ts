import type { ClickHouse } from '@gamenet/engines'
import { Chance } from '../simulate/chance.js'
import { requireSame, type ServedApi, serveTables } from './api-on-tables.js'
import { figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { openTitleCountRows } from './title-count-rows.js'

const QUERIES = 60
const WARMING = 3
const WIDTH_SECONDS = 21_600
const HOUR_MS = 3_600_000
const HOURS = 8760
/** Whole weeks and more than a year: copies shifted by it keep their hours of the week and do not overlap. */
const YEAR_DAYS = 371
const YEARS = 5
const MATRIX_MS_MAX = 30

/** Title history over a year (`GET /api/title/:titleId/online-users/history`), each query new, over HTTP against bare SQL. */
export const titleHistory: Measurement = {
  name: 'title-history',
  claim: 'a new query for a year of a title takes at most twice the bare SQL',
  async run(conditions) {
    const { tables, titleIds, rows, fromMs, toMs } = await openTitleCountRows(conditions)
    await describeTitles(tables)
    conditions.note('generating the hours')
    await makeHours(tables)
    const api = await serveTables(tables)
    try {
      const times = { api: [] as number[], samples: [] as number[] }
      const chance = new Chance(3)
      const queries = scaled(QUERIES, conditions.scale, 10)
      for (let n = -WARMING; n < queries; n += 1) {
        const titleId = titleIds[chance.below(titleIds.length)] ?? ''
        // A year that does not begin on the hour, so that its edges are read from samples.
        const from = fromMs - 1_000 * n * 60 - 600_000
        const window = { titleId, from, to: Math.max(toMs, from + HOURS * HOUR_MS) }
        const path = `/api/title/${titleId}/online-users/history?from=${iso(from)}&to=${iso(window.to)}&resolution=${WIDTH_SECONDS}`
        const answered = await api.get(path)
        const samples = await api.sql(SAMPLES_SQL, window)
        requireSame((text) => JSON.parse(text), answered, samples, ['recorded_at', 'online_count'])
        if (n < 0) continue
        times.api.push(answered.ms)
        times.samples.push(samples.ms)
      }
      const matrix = await hourMatrix(tables, api, titleIds)
      const detail = `${times.api.length} queries; p99 ${figure(quantile(times.api, 0.99))} ms, ${figure(rows)} rows`
      return [
        {
          what: 'title history over 8,760 hours, median',
          measured: quantile(times.api, 0.5),
          unit: 'ms',
          baseline: { what: 'bare SQL over the samples', measured: quantile(times.samples, 0.5) },
          target: { bound: 'at most', value: 2, of: 'ratio' },
          detail
        },
        matrix
      ]
    } finally {
      await api.close()
      await tables.close()
    }
  }
}

/** The hours of the week (`GET /api/calendar/hours`) of five years, one query per title. */
async function hourMatrix(tables: ClickHouse, api: ServedApi, titleIds: readonly string[]): Promise<Result> {
  for (let years = 1; years < YEARS; years += 1) {
    await tables.rebuild.execute(
      `INSERT INTO title_count_hour__0 (title_id, hour, min, max, max_at, sum, samples, position)
       SELECT h.title_id, h.hour - INTERVAL ${years * YEAR_DAYS} DAY, h.min, h.max, h.max_at - INTERVAL ${years * YEAR_DAYS} DAY,
         h.sum, h.samples, h.position
       FROM title_count_hour__0 AS h WHERE h.hour >= toDateTime('2025-01-01 00:00:00', 'UTC')`
    )
  }
  const times: number[] = []
  for (const [n, titleId] of titleIds.entries()) {
    const { ms } = await api.get(`/api/calendar/hours?titleId=${titleId}`)
    if (n >= WARMING) times.push(ms)
  }
  return {
    what: `hours of the week of ${YEARS} years of a title, median`,
    measured: quantile(times, 0.5),
    unit: 'ms',
    target: { bound: 'at most', value: MATRIX_MS_MAX, of: 'measured' },
    detail: `${times.length} titles, each new; p99 ${figure(quantile(times, 0.99))} ms`
  }
}

/** The same answer from the samples only. */
const SAMPLES_SQL = `
  SELECT formatDateTime(toStartOfInterval(c.ts, INTERVAL ${WIDTH_SECONDS} SECOND, 'UTC'), '%F %T', 'UTC') AS recorded_at,
    max(c.online) AS online_count
  FROM title_count__0 AS c FINAL
  WHERE c.title_id = {titleId: String}
    AND c.ts >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND c.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
  GROUP BY recorded_at ORDER BY recorded_at`

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

async function describeTitles({ rebuild }: ClickHouse): Promise<void> {
  await rebuild.execute(
    `INSERT INTO title__0 (title_id, field, value, name_key, version)
     SELECT c.title_id, 'name', concat('Game ', c.title_id), concat('game ', c.title_id), 1 FROM title_count__0 AS c GROUP BY c.title_id`
  )
}

/** Fills the hours with the projection's aggregates, for all titles at once. */
async function makeHours({ rebuild }: ClickHouse): Promise<void> {
  await rebuild.execute(
    `INSERT INTO title_count_hour__0 (title_id, hour, min, max, max_at, sum, samples, position)
     SELECT c.title_id, toStartOfHour(c.ts), min(c.online), max(c.online), argMin(c.ts, (-toInt64(c.online), c.ts)),
       sum(c.online), count(), max(c.position)
     FROM title_count__0 AS c FINAL GROUP BY c.title_id, toStartOfHour(c.ts)`
  )
}
