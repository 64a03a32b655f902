import { Count, RecordedAt, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query, within } from './query.js'
import { DayCut } from './series.js'
import { seriesQueries } from './series-statements.js'

/*
 * Counts of titles. FINAL reads the corrected one of two rows of a key. Merged parts of a table are read without that
 * work, and edges are at most an hour, so it costs no more than grouping by hand (both measured at 50 M rows).
 */

const Ms = z.int().nonnegative()
const SERIES = {
  table: 'title_count',
  value: 'online',
  key: 'title_id',
  parameter: 'titleId',
  event: 'e.online'
} as const
const TitlePoint = z.object({ recorded_at: RecordedAt, online_count: Count })

const INSTANTS = ['first', 'second', 'third'] as const

/** Selects the samples of one title that are near one of three instants, oldest first. */
export const nearSamples = query({
  params: z.object({ titleId: TitleId, first: Ms, second: Ms, third: Ms, nearMs: Ms }),
  row: z.object({ ms: Ms, online: Count }),
  sql: `
    SELECT toFloat64(toUnixTimestamp64Milli(c.ts)) AS ms, c.online AS online
    FROM {title_count: Identifier} AS c FINAL
    WHERE c.title_id = {titleId: String} AND (${INSTANTS.map(
      (name) => `
        c.ts >= fromUnixTimestamp64Milli(greatest(0, {${name}: Int64} - {nearMs: Int64}), 'UTC')
        AND c.ts <= fromUnixTimestamp64Milli({${name}: Int64} + {nearMs: Int64}, 'UTC')`
    ).join(' OR')}
      )
    ORDER BY c.ts`
})

/** Selects the samples of one title, or each bucket with one: whole hours from the rollup, the edges from samples. */
export const titleSeriesQueries = seriesQueries(SERIES, { titleId: TitleId }, TitlePoint, 'online_count')

/** The totals of one title in a window. */
export type TitleActivity = z.infer<typeof TitleActivity>
export const TitleActivity = z.object({
  titleId: TitleId,
  peak: Count,
  /** The first instant of the peak, milliseconds since 1970. */
  peakAtMs: z.int().nonnegative(),
  /** Mean of the samples, one decimal, halves up. */
  average: z.number().nonnegative(),
  counted: z.int().positive(),
  /** UTC hours with a sample above 0. */
  activeHours: z.int().nonnegative()
})

/**
 * Selects every title with a sample in a window: whole days from the day rollup, the whole hours around them from the
 * hour rollup, the edges from the samples. Over 30 days that takes 45 ms; the samples alone take 250 (95 titles, 50 M
 * rows). Milliseconds are Float64, which is exact and a JSON number.
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
      toFloat64(sum(s.samples)) AS counted,
      toUInt32(sum(s.active)) AS activeHours
    FROM (
      SELECT
        d.title_id AS title_id,
        max((d.max, -toUnixTimestamp64Milli(d.max_at))) AS top,
        sum(d.sum) AS total,
        sum(toUInt64(d.samples)) AS samples,
        sum(toUInt64(d.active_hours)) AS active
      FROM {title_count_day: Identifier} AS d FINAL
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
      FROM {title_count_hour: Identifier} AS h FINAL
      WHERE ${within('h.hour', 'firstHour', 'firstDay')} OR ${within('h.hour', 'lastDay', 'lastHour')}
      GROUP BY h.title_id
      UNION ALL
      SELECT
        c.title_id AS title_id,
        max((c.online, -toUnixTimestamp64Milli(c.ts))) AS top,
        sum(toUInt64(c.online)) AS total,
        count() AS samples,
        uniqExactIf(toStartOfHour(c.ts), c.online > 0) AS active
      FROM {title_count: Identifier} AS c FINAL
      WHERE ${within('c.ts', 'from', 'firstHour')} OR ${within('c.ts', 'lastHour', 'to')}
      GROUP BY c.title_id
    ) AS s
    GROUP BY s.title_id`
})

/**
 * Titles of `title_latest` whose newest row lies at or behind `to`. Without FINAL: a replaced row is older, never
 * newer.
 */
const TITLES_AHEAD = `
        SELECT a.imported, a.title_id
        FROM {title_latest: Identifier} AS a
        WHERE a.ts >= fromUnixTimestamp64Milli({to: Int64}, 'UTC')`

/** The newest count of a title. */
export type LiveTitleCount = z.infer<typeof LiveTitleCount>
const LiveTitleCount = z.object({
  titleId: TitleId,
  /** Instant of the count, milliseconds since 1970. */
  countedAtMs: Ms,
  online: Count,
  sessions: Count.nullable(),
  lobbyPlayers: Count.nullable()
})

/**
 * Selects the titles of the newest scrape before `to`: those whose newest count is at the newest instant that was not
 * imported, or, if everything was imported, at the newest instant. A title that the newest scrape could not read is
 * excluded. FINAL: a replaced row must not count.
 *
 * A row that lies behind `to` (a clock or an import was ahead) hides an earlier one, which is then found among all
 * events: the table has no key for it. That reads nothing while there is no such row (the condition without columns
 * is a constant), nor for imported rows while the newest scrape is known.
 */
export const liveTitleCounts = query({
  params: z.object({ to: Ms }),
  row: LiveTitleCount,
  sql: `
    WITH (
      SELECT (
        countIf(NOT n.imported AND n.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')),
        countIf(NOT n.imported),
        countIf(n.ts >= fromUnixTimestamp64Milli({to: Int64}, 'UTC'))
      )
      FROM {title_latest: Identifier} AS n FINAL
    ) AS rows
    SELECT r.title_id AS titleId, toFloat64(toUnixTimestamp64Milli(r.newest.1)) AS countedAtMs, r.newest.2 AS online,
      r.newest.3 AS sessions, r.newest.4 AS lobbyPlayers
    FROM (
      SELECT l.title_id AS title_id, l.imported AS imported, (l.ts, l.online, l.sessions, l.lobby_players) AS newest
      FROM {title_latest: Identifier} AS l FINAL
      WHERE l.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
      UNION ALL
      SELECT e.title_id AS title_id, e.import_id != '' AS imported,
        argMax((e.observed_at, e.online, e.sessions, e.lobby_players), e.version) AS newest
      FROM {event_title_count: Identifier} AS e
      WHERE if(rows.1 > 0, rows.2 > rows.1, rows.3 > 0)
        AND e.observed_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
        AND (e.import_id != '', e.title_id) IN (${TITLES_AHEAD})
      GROUP BY imported, title_id
    ) AS r
    QUALIFY (NOT r.imported, r.newest.1) = max((NOT r.imported, r.newest.1)) OVER ()
    ORDER BY r.title_id`
})

/**
 * Selects every counted title and the instant of its newest count before `to`, scraped or imported, milliseconds
 * since 1970; 0 for a title that has later counts only.
 */
export const newestTitleCounts = query({
  params: z.object({ to: Ms }),
  row: z.object({ titleId: TitleId, countedAtMs: z.int().nonnegative() }),
  sql: `
    SELECT s.title_id AS titleId, toFloat64(max(if(s.ms < {to: Int64}, s.ms, 0))) AS countedAtMs
    FROM (
      SELECT l.title_id AS title_id, toUnixTimestamp64Milli(l.ts) AS ms
      FROM {title_latest: Identifier} AS l
      UNION ALL
      SELECT c.title_id AS title_id, toUnixTimestamp64Milli(max(c.ts)) AS ms
      FROM {title_count: Identifier} AS c
      WHERE c.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
        AND c.title_id IN (
          SELECT a.title_id FROM {title_latest: Identifier} AS a
          WHERE a.ts >= fromUnixTimestamp64Milli({to: Int64}, 'UTC')
        )
      GROUP BY c.title_id
    ) AS s
    GROUP BY s.title_id`
})
