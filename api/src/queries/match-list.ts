import { Count, RecordedAt, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query, within } from './query.js'
import { HourCut } from './series.js'

/*
 * list     the lobbies of one title at one instant
 * match    the n-th lobby with one host name in successive lists; it belongs to a window that its time from first to
 *          last sighting overlaps
 */

const Ms = z.int().nonnegative()

/** Maximum number of matches in an answer: about 20 MB of JSON. */
export const MATCHES_MAX = 100_000

/**
 * Returns the newest lists before `nowEnd` of the titles that meet a condition. A later list (a clock was ahead)
 * hides an earlier one, which is then found among all lists: no row of a title is read there while its newest list
 * has a past instant.
 */
const newestLists = (condition: string) => `
      SELECT l.title_id AS title_id, l.ts AS at, l.hosts AS hosts, l.players AS players, l.max_players AS max_players
      FROM {match_latest: Identifier} AS l FINAL
      WHERE ${condition} AND l.ts < fromUnixTimestamp64Milli({nowEnd: Int64}, 'UTC')
      UNION ALL
      SELECT l.title_id AS title_id, l.ts AS at, l.hosts AS hosts, l.players AS players, l.max_players AS max_players
      FROM {match_list: Identifier} AS l FINAL
      WHERE ${condition} AND l.ts < fromUnixTimestamp64Milli({nowEnd: Int64}, 'UTC')
        AND l.title_id IN (
          SELECT a.title_id FROM {match_latest: Identifier} AS a
          WHERE a.ts >= fromUnixTimestamp64Milli({nowEnd: Int64}, 'UTC')
        )
      ORDER BY at DESC
      LIMIT 1 BY title_id`

const OF_TITLE = 'l.title_id = {titleId: String}'

/** Selects the newest list of one title before `nowEnd`; no row if there is none. */
export const newestList = query({
  params: z.object({ titleId: TitleId, nowEnd: Ms }),
  row: z.object({
    timestamp: RecordedAt,
    listedAtMs: Ms,
    hosts: z.array(z.string()),
    players: z.array(Count),
    maxPlayers: z.array(Count)
  }),
  sql: `
    SELECT formatDateTime(n.at, '%F %T', 'UTC') AS timestamp, toFloat64(toUnixTimestamp64Milli(n.at)) AS listedAtMs,
      n.hosts AS hosts, n.players AS players, n.max_players AS maxPlayers
    FROM (${newestLists(OF_TITLE)}
    ) AS n`
})

/** Selects the hosts of every title's newest list before `nowEnd`, and the list's instant, milliseconds since 1970. */
export const newestHosts = query({
  params: z.object({ nowEnd: Ms }),
  row: z.object({ titleId: TitleId, listedAtMs: Ms, hosts: z.array(z.string()) }),
  sql: `
    SELECT n.title_id AS titleId, toFloat64(toUnixTimestamp64Milli(n.at)) AS listedAtMs, n.hosts AS hosts
    FROM (${newestLists('true')}
    ) AS n
    WHERE notEmpty(n.hosts)`
})

const Window = z.object({ titleId: TitleId, from: Ms, to: Ms })

/** The matches `s` of a title in a {@link Window}. */
const IN_WINDOW = `
    FROM {match_session: Identifier} AS s FINAL
    WHERE s.title_id = {titleId: String}
      AND s.last_seen >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
      AND s.first_seen < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
      AND NOT s.is_void`

/**
 * Selects the matches of a title in a window, newest first, at most one above {@link MATCHES_MAX}. A match is open if
 * it is in the newest list before `nowEnd`, and that list is not before `openSince`.
 */
export const matchesInWindow = query({
  params: Window.extend({ openSince: Ms, nowEnd: Ms }),
  row: z.object({
    hostName: z.string(),
    firstSeenMs: Ms,
    lastSeenMs: Ms,
    peakPlayers: Count,
    maxPlayers: Count,
    isOpen: z.boolean()
  }),
  sql: `
    WITH (SELECT max(n.at) FROM (${newestLists(OF_TITLE)}
    ) AS n) AS newest
    SELECT s.host AS hostName,
      toFloat64(toUnixTimestamp64Milli(s.first_seen)) AS firstSeenMs,
      toFloat64(toUnixTimestamp64Milli(s.last_seen)) AS lastSeenMs,
      s.peak_players AS peakPlayers, s.max_players AS maxPlayers,
      toBool(newest >= fromUnixTimestamp64Milli({openSince: Int64}, 'UTC')
        AND newest BETWEEN s.first_seen AND s.last_seen) AS isOpen
    ${IN_WINDOW}
    ORDER BY s.first_seen DESC, s.host, s.nth
    LIMIT ${MATCHES_MAX + 1}`
})

/** Selects the totals of a title's matches in a window and its last parts, and their total duration. One row. */
export const matchTotals = query({
  params: Window.extend({ fromDay: Ms, fromWeek: Ms }),
  row: z.object({
    matches: Count,
    matchesOfWeek: Count,
    matchesOfDay: Count,
    /** Mean time from first to last sighting in minutes, one decimal, halves up; 0 without a match. */
    averageDurationMinutes: z.number().nonnegative()
  }),
  sql: `
    SELECT toUInt32(count()) AS matches,
      toUInt32(countIf(s.last_seen >= fromUnixTimestamp64Milli({fromWeek: Int64}, 'UTC'))) AS matchesOfWeek,
      toUInt32(countIf(s.last_seen >= fromUnixTimestamp64Milli({fromDay: Int64}, 'UTC'))) AS matchesOfDay,
      intDiv(
        sum(toUnixTimestamp64Milli(s.last_seen) - toUnixTimestamp64Milli(s.first_seen)) * 20 + count() * 60000,
        greatest(count(), 1) * 120000
      ) / 10 AS averageDurationMinutes
    ${IN_WINDOW}`
})

/** Selects the ten hosts with the most matches in a window; equal ones by code points. */
export const topHosts = query({
  params: Window,
  row: z.object({ hostName: z.string(), matches: Count }),
  sql: `
    SELECT s.host AS hostName, toUInt32(count()) AS matches
    ${IN_WINDOW}
    GROUP BY s.host
    ORDER BY count() DESC, s.host
    LIMIT 10`
})

/** The lists of a window in one hour of the day. */
export type HourOfDay = z.infer<typeof HourOfDay>
const HourOfDay = z.object({
  hourUtc: z.int().min(0).max(23),
  lists: Count,
  /** Hours of the window, each of one day, that hold a list. */
  hours: Count,
  /** Lobbies of all lists together, and their players. */
  lobbies: z.int().nonnegative(),
  players: z.int().nonnegative(),
  /** Maximum number of lobbies in one list, and its first instant. */
  mostLobbies: Count,
  mostLobbiesAtMs: Ms
})

/**
 * Selects the lists of a title in a window by hour of the day: whole hours from the rollup, the edges from the lists.
 */
export const hoursOfDay = query({
  params: HourCut.extend({ titleId: TitleId }),
  row: HourOfDay,
  sql: `
    SELECT s.hour_utc AS hourUtc, toUInt32(sum(s.lists)) AS lists, toUInt32(uniqExact(s.hour)) AS hours,
      toFloat64(sum(s.lobbies)) AS lobbies,
      toFloat64(sum(s.players)) AS players, max(s.top) AS most, most.1 AS mostLobbies,
      toFloat64(-most.2) AS mostLobbiesAtMs
    FROM (
      SELECT h.hour AS hour, toHour(h.hour) AS hour_utc, toUInt64(h.lists) AS lists, h.lobbies AS lobbies,
        h.players AS players,
        (h.lobbies_max, -toUnixTimestamp64Milli(h.lobbies_max_at)) AS top
      FROM {match_list_hour: Identifier} AS h FINAL
      WHERE h.title_id = {titleId: String}
        AND ${within('h.hour', 'firstHour', 'lastHour')}
      UNION ALL
      SELECT toDateTime(toStartOfHour(m.ts), 'UTC') AS hour, toHour(m.ts) AS hour_utc, toUInt64(1) AS lists,
        length(m.hosts) AS lobbies,
        arraySum(m.players) AS players, (toUInt32(length(m.hosts)), -toUnixTimestamp64Milli(m.ts)) AS top
      FROM {match_list: Identifier} AS m FINAL
      WHERE m.title_id = {titleId: String}
        AND (
          ${within('m.ts', 'from', 'firstHour')} OR ${within('m.ts', 'lastHour', 'to')}
        )
    ) AS s
    GROUP BY s.hour_utc
    ORDER BY s.hour_utc`
})
