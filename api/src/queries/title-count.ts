import { Count, RecordedAt, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'
import { DayCut, HourCut } from './series.js'
import { peaksSql, pointCountSql, samplesSql } from './series-statements.js'

/*
 * Counts of titles. FINAL reads the corrected one of two rows of a key; merged stretches of a table are read without
 * that work, and edges are an hour at most, so it costs no more than grouping by hand (both measured at 50 M rows).
 */

const Ms = z.int().nonnegative()
const Samples = z.object({ titleId: TitleId, from: Ms, to: Ms })
const SERIES = { table: 'title_count', value: 'online', key: 'title_id', parameter: 'titleId' }
const TitlePoint = z.object({ recorded_at: RecordedAt, online_count: Count })

/** The samples of one title, oldest first; nothing at all when there are more than a million of them. */
export const titleSamples = query({
  params: Samples,
  row: TitlePoint,
  sql: samplesSql(SERIES, 'online_count')
})

/** The peak of each bucket that holds a sample of one title: whole hours from the rollup, the edges from samples. */
export const titlePeaks = query({
  params: HourCut.extend({ titleId: TitleId, width: z.int().positive() }),
  row: TitlePoint,
  sql: peaksSql(SERIES, 'online_count')
})

/** How many points a title's series would have, counted no further than one above the limit. */
export const titlePointCount = query({
  params: Samples.extend({ widthMs: z.int().positive() }),
  row: z.object({ points: z.int().nonnegative() }),
  sql: pointCountSql(SERIES)
})

/** What a window knows of one title. */
export type TitleActivity = z.infer<typeof TitleActivity>
export const TitleActivity = z.object({
  titleId: TitleId,
  peak: Count,
  /** The first instant of the peak, milliseconds since 1970. */
  peakAtMs: z.int().nonnegative(),
  /** Mean of the samples, one decimal, halves up. */
  average: z.number().nonnegative(),
  /** UTC hours with a sample above 0. */
  activeHours: z.int().nonnegative()
})

/**
 * Every title with a sample in a window: whole days from the day rollup, the whole hours around them from the hour rollup,
 * the edges from the samples. Over 30 days that is 45 ms where the samples alone take 250 (95 titles, 50 M rows).
 * Milliseconds leave as Float64, which holds them exactly and is a JSON number.
 */
export const titleActivity = query({
  params: DayCut,
  row: TitleActivity,
  sql: `
    SELECT
      s.title_id AS titleId,
      max(s.top) AS top,
      top.1 AS peak,
      toFloat64(-top.2) AS peakAtMs,
      intDiv(sum(s.total) * 20 + sum(s.samples), sum(s.samples) * 2) / 10 AS average,
      toUInt32(sum(s.active)) AS activeHours
    FROM (
      SELECT
        d.title_id AS title_id,
        max((d.max, -toUnixTimestamp64Milli(d.max_at))) AS top,
        sum(d.sum) AS total,
        sum(toUInt64(d.samples)) AS samples,
        sum(toUInt64(d.active_hours)) AS active
      FROM title_count_day AS d FINAL
      WHERE d.day >= toDate(fromUnixTimestamp64Milli({firstDay: Int64}, 'UTC'))
        AND d.day < toDate(fromUnixTimestamp64Milli({lastDay: Int64}, 'UTC'))
      GROUP BY d.title_id
      UNION ALL
      SELECT
        h.title_id AS title_id,
        max((h.max, -toUnixTimestamp64Milli(h.max_at))) AS top,
        sum(h.sum) AS total,
        sum(toUInt64(h.samples)) AS samples,
        countIf(h.max > 0) AS active
      FROM title_count_hour AS h FINAL
      WHERE (
          h.hour >= fromUnixTimestamp64Milli({firstHour: Int64}, 'UTC')
          AND h.hour < fromUnixTimestamp64Milli({firstDay: Int64}, 'UTC')
        ) OR (
          h.hour >= fromUnixTimestamp64Milli({lastDay: Int64}, 'UTC')
          AND h.hour < fromUnixTimestamp64Milli({lastHour: Int64}, 'UTC')
        )
      GROUP BY h.title_id
      UNION ALL
      SELECT
        c.title_id AS title_id,
        max((c.online, -toUnixTimestamp64Milli(c.ts))) AS top,
        sum(toUInt64(c.online)) AS total,
        count() AS samples,
        uniqExactIf(toStartOfHour(c.ts), c.online > 0) AS active
      FROM title_count AS c FINAL
      WHERE (
          c.ts >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
          AND c.ts < fromUnixTimestamp64Milli({firstHour: Int64}, 'UTC')
        ) OR (
          c.ts >= fromUnixTimestamp64Milli({lastHour: Int64}, 'UTC')
          AND c.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
        )
      GROUP BY c.title_id
    ) AS s
    GROUP BY s.title_id`
})

/**
 * The titles of the newest scrape before `to`: those whose newest count stands at the newest instant that was not
 * imported, or at the newest one of all where everything was imported. A title that the newest scrape could not read is
 * not among them. FINAL in both places: a row that a later one has replaced must count in none of them.
 */
export const liveTitleCounts = query({
  params: z.object({ to: Ms }),
  row: z.object({
    titleId: TitleId,
    /** Instant of the count, milliseconds since 1970. */
    countedAtMs: Ms,
    online: Count,
    sessions: Count.nullable(),
    lobbyPlayers: Count.nullable()
  }),
  sql: `
    SELECT l.title_id AS titleId, toFloat64(toUnixTimestamp64Milli(l.ts)) AS countedAtMs, l.online AS online,
      l.sessions AS sessions, l.lobby_players AS lobbyPlayers
    FROM title_latest AS l FINAL
    WHERE (NOT l.imported, l.ts) = (
      SELECT max((NOT n.imported, n.ts))
      FROM title_latest AS n FINAL
      WHERE n.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
    )
    ORDER BY l.title_id`
})

/** When each title was counted last, by a scrape or in an imported file, milliseconds since 1970. */
export const newestTitleCounts = query({
  params: z.object({}),
  row: z.object({ titleId: TitleId, countedAtMs: z.int().nonnegative() }),
  sql: `
    SELECT l.title_id AS titleId, toFloat64(toUnixTimestamp64Milli(max(l.ts))) AS countedAtMs
    FROM title_latest AS l
    GROUP BY l.title_id`
})
