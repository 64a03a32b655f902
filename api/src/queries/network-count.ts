import { Count, RecordedAt } from '@gamenet/schemas'
import { z } from 'zod'
import { NETWORK_COUNTS, RowsCut, rowsSql } from './count-rows.js'
import { query, within } from './query.js'
import { meanSql, seriesQueries } from './series-statements.js'

/*
 * Counts of the whole network. A row may still exist twice, before and after a correction: FINAL reads the newer one.
 * It is cheap here, because every query has a window and a metric, which leads the key.
 */

/** The metrics of the network: values of the column `metric`. */
export const NetworkMetric = z.enum(['registered', 'online', 'lobbies'])

const Ms = z.int().nonnegative()
const SERIES = { table: 'network_count', value: 'value', key: 'metric', parameter: 'metric' } as const

const OnlinePoint = z.object({ recorded_at: RecordedAt, online_count: Count })
const LobbyPoint = z.object({ recorded_at: RecordedAt, lobby_count: Count })

/** The metrics with series. */
export const networkSeriesQueries = {
  online: seriesQueries({ ...SERIES, event: 'e.online' }, { metric: NetworkMetric }, OnlinePoint, 'online_count'),
  lobbies: seriesQueries({ ...SERIES, event: 'e.lobbies' }, { metric: NetworkMetric }, LobbyPoint, 'lobby_count')
} as const

/** Selects the last registered count of each UTC day that has one. */
export const registeredByDay = query({
  params: RowsCut,
  row: z.object({ date: z.iso.date(), registered_count: Count }),
  sql: `
    SELECT toString(toDate(r.at)) AS date, argMax(r.last, r.last_at) AS registered_count
    FROM (${rowsSql(NETWORK_COUNTS, 'hour')}
    ) AS r
    GROUP BY date
    ORDER BY date`
})

/**
 * Selects every UTC day with an online sample. `avg_online` is the mean of the day's samples, one decimal, halves up.
 * `coverage` is the share of the day's hours with a sample, 3 decimals, halves up; of the day in which the window ends,
 * only the hours that it touches count.
 */
export const onlineByDay = query({
  params: RowsCut,
  row: z.object({
    date: z.iso.date(),
    min_online: Count,
    max_online: Count,
    avg_online: z.number().nonnegative(),
    samples: z.int().positive(),
    coverage: z.number().positive().max(1)
  }),
  sql: `
    SELECT
      toString(d.day) AS date,
      d.min_online AS min_online,
      d.max_online AS max_online,
      ${meanSql('d.total', 'd.counted')} AS avg_online,
      toUInt32(d.counted) AS samples,
      intDiv(d.hours * 2000 + d.hours_begun, d.hours_begun * 2) / 1000 AS coverage
    FROM (
      SELECT
        toDate(r.at) AS day,
        min(r.lowest) AS min_online,
        max(r.highest) AS max_online,
        sum(r.total) AS total,
        sum(r.counted) AS counted,
        uniqExact(toStartOfHour(r.at)) AS hours,
        fromUnixTimestamp64Milli({toMs: Int64} - 1, 'UTC') AS last,
        if(day = toDate(last), toHour(last) + 1, 24) AS hours_begun
      FROM (${rowsSql(NETWORK_COUNTS, 'hour')}
      ) AS r
      GROUP BY day
    ) AS d
    ORDER BY d.day`
})

/**
 * Selects the network's peaks in a window, each at its first instant, and the number of instants with any count. A
 * metric without a sample has the peak 0 at 1970, and 0 samples.
 */
export const networkActivity = query({
  params: z.object({ from: Ms, to: Ms }),
  row: z.object({
    peakOnline: Count,
    peakOnlineAtMs: z.int(),
    onlineSamples: z.int().nonnegative(),
    peakLobbies: Count,
    peakLobbiesAtMs: z.int(),
    lobbySamples: z.int().nonnegative(),
    instants: z.int().nonnegative()
  }),
  sql: `
    SELECT
      maxIf((c.value, -toUnixTimestamp64Milli(c.ts)), c.metric = 'online') AS top_online,
      maxIf((c.value, -toUnixTimestamp64Milli(c.ts)), c.metric = 'lobbies') AS top_lobbies,
      top_online.1 AS peakOnline,
      toFloat64(-top_online.2) AS peakOnlineAtMs,
      toUInt32(countIf(c.metric = 'online')) AS onlineSamples,
      top_lobbies.1 AS peakLobbies,
      toFloat64(-top_lobbies.2) AS peakLobbiesAtMs,
      toUInt32(countIf(c.metric = 'lobbies')) AS lobbySamples,
      toUInt32(uniqExact(c.ts)) AS instants
    FROM {network_count: Identifier} AS c FINAL
    WHERE c.metric IN ('registered', 'online', 'lobbies')
      AND ${within('c.ts', 'from', 'to')}`
})
