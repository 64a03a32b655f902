import { z } from 'zod'
import { query } from './query.js'

/*
 * gap         the time between two successes of a source that is longer than usual: three times the median, three of
 *             its periods, and 10 minutes. Before its first success, a source did not run
 * counts      the hours with a count of users online, whatever its origin
 */

const GAP_MS_MIN = 600_000
const Ms = z.int().nonnegative()
const Window = z.object({ from: Ms, to: Ms })
/** The end of now, and the longest usual step of each source, in milliseconds. */
const Usual = Window.extend({ nowEnd: Ms, sources: z.array(z.string()), stepsMs: z.array(Ms) })

/**
 * Successes outside the window count too, because it may begin or end inside a gap: those in the look-back, the last
 * one before it, and the first one after the window that is not in the future.
 */
const LOOK_BACK_DAYS = 30

const SUCCESSES = `
        SELECT r.source AS source, r.ts AS at
        FROM {scrape: Identifier} AS r FINAL
        WHERE r.outcome != 'failed'
          AND r.ts >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') - INTERVAL ${LOOK_BACK_DAYS} DAY
          AND r.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
        UNION ALL
        SELECT b.source AS source, max(b.ts) AS at
        FROM {scrape: Identifier} AS b
        WHERE b.outcome != 'failed'
          AND b.ts < fromUnixTimestamp64Milli({from: Int64}, 'UTC') - INTERVAL ${LOOK_BACK_DAYS} DAY
        GROUP BY source
        UNION ALL
        SELECT 'counts' AS source, toDateTime64(max(k.hour), 3, 'UTC') AS at
        FROM {network_count_hour: Identifier} AS k
        WHERE k.metric = 'online'
          AND k.hour < fromUnixTimestamp64Milli({from: Int64}, 'UTC') - INTERVAL ${LOOK_BACK_DAYS} DAY
        HAVING count() > 0
        UNION ALL
        SELECT 'counts' AS source, toDateTime64(h.hour, 3, 'UTC') AS at
        FROM {network_count_hour: Identifier} AS h FINAL
        WHERE h.metric = 'online'
          AND h.hour >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') - INTERVAL ${LOOK_BACK_DAYS} DAY
          AND h.hour < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
        UNION ALL
        SELECT a.source AS source, min(a.ts) AS at
        FROM {scrape: Identifier} AS a
        WHERE a.outcome != 'failed' AND a.ts >= fromUnixTimestamp64Milli({to: Int64}, 'UTC')
          AND a.ts < fromUnixTimestamp64Milli({nowEnd: Int64}, 'UTC')
        GROUP BY source
        UNION ALL
        SELECT 'counts' AS source, toDateTime64(min(n.hour), 3, 'UTC') AS at
        FROM {network_count_hour: Identifier} AS n
        WHERE n.metric = 'online' AND n.hour >= fromUnixTimestamp64Milli({to: Int64}, 'UTC')
          AND n.hour < fromUnixTimestamp64Milli({nowEnd: Int64}, 'UTC')
        HAVING count() > 0`

/**
 * Selects the gaps of each source that touch a window, and the time since its last success if that is one; `toMs` is
 * null while a gap lasts.
 */
export const gaps = query({
  params: Usual,
  row: z.object({ source: z.string(), fromMs: Ms, toMs: Ms.nullable() }),
  sql: `
    SELECT e.source AS source, gap.1 AS fromMs, gap.2 AS toMs
    FROM (
      SELECT
        s.source AS source,
        arraySort(groupArray(toFloat64(toUnixTimestamp64Milli(s.at)))) AS instants,
        arrayDifference(instants) AS steps,
        greatest(
          ${GAP_MS_MIN},
          3 * arrayElement(arraySort(arrayPopFront(steps)), intDiv(length(steps), 2)),
          transform(s.source, {sources: Array(String)}, {stepsMs: Array(Float64)}, 0.)
        ) AS usual,
        arrayConcat(
          arrayFilter(
            gap -> gap.2 - gap.1 > usual AND gap.2 > {from: Int64},
            arrayZip(arrayPopBack(instants), CAST(arrayPopFront(instants), 'Array(Nullable(Float64))'))
          ),
          if({to: Int64} - instants[-1] > usual, [(instants[-1], CAST(NULL, 'Nullable(Float64)'))], [])
        ) AS found
      FROM (${SUCCESSES}
      ) AS s
      GROUP BY s.source
    ) AS e
    ARRAY JOIN e.found AS gap
    ORDER BY source, fromMs`
})

/** Selects the newest runs of each source: its last success before `to`, and the outcome of its last run. */
export const newestRuns = query({
  params: z.object({ to: Ms }),
  row: z.object({ source: z.string(), successMs: Ms.nullable(), outcome: z.string() }),
  sql: `
    SELECT
      r.source AS source,
      toFloat64(maxOrNullIf(toUnixTimestamp64Milli(r.ts), r.outcome != 'failed')) AS successMs,
      argMax(r.outcome, r.ts) AS outcome
    FROM {scrape: Identifier} AS r FINAL
    WHERE r.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
    GROUP BY source
    UNION ALL
    SELECT 'counts' AS source, toFloat64(toUnixTimestamp64Milli(max(c.ts))) AS successMs, 'succeeded' AS outcome
    FROM {network_count: Identifier} AS c
    WHERE c.metric = 'online' AND c.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
    HAVING count() > 0`
})
