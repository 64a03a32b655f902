import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { openFilledTables } from './filled-tables.js'
import { type Conditions, scaled } from './measurement.js'

/*
 * A year of counts by the minute, 95 titles, 50 million rows of `title_count`, made by the engine itself. Each count is a
 * day's rhythm and a walk between two walls: per minute as many players come and go as would for visits of half an hour, so
 * that a title with 150 players changes at nearly each scrape and one with 2 every seven minutes.
 */

const TITLES = 95
const YEAR_MINUTES = 525_600
/** Every second title of a network of 190 whose popularity follows Zipf: level of title n = people ÷ (harmonic number × n). */
const PEOPLE = 1000
const HARMONIC = 5.83
const TITLES_AN_INSERT = 5
/** The year ends with 2025, so that one insert touches one partition of the table. */
const LAST_MINUTE_MS = Date.UTC(2026, 0, 1) - 60_000
const MINUTE_MS = 60_000

export type TitleCountRows = {
  /** The data directory. */
  readonly path: string
  readonly titleIds: readonly string[]
  readonly rows: number
  /** First minute and the one after the last, milliseconds since 1970. */
  readonly fromMs: number
  readonly toMs: number
}

/**
 * Opens tables that hold the rows, making them unless an earlier measurement of this run has. Scrapes that come at instants
 * other than whole minutes are `observed`, an SQL expression of `minute` (ms) that gives ms.
 */
export async function openTitleCountRows(conditions: Conditions): Promise<{ tables: ClickHouse } & TitleCountRows> {
  const { directory, scale, note } = conditions
  const path = join(directory, 'title-count-rows')
  const minutes = scaled(YEAR_MINUTES, scale, 10_000)
  const toMs = LAST_MINUTE_MS + MINUTE_MS
  const fromMs = toMs - minutes * MINUTE_MS
  const titleIds = Array.from({ length: TITLES }, (_, i) => (0x4d53_07d0 + i * 41).toString(16))
  const tables = await openFilledTables(path, async (tables) => {
    note(`making ${titleIds.length * minutes} rows of title_count`)
    for (let first = 0; first < TITLES; first += TITLES_AN_INSERT) {
      const count = Math.min(TITLES_AN_INSERT, TITLES - first)
      await tables.rebuild.execute(insertSql(titleIds.slice(first, first + count), first, fromMs, minutes))
    }
  })
  return { tables, path, titleIds, rows: titleIds.length * minutes, fromMs, toMs }
}

/** The instants of scrapes, in ms, as SQL of `minute` (0, 1, …). */
export const SCHEDULES = {
  /** On whole minutes: imports, and the demo's history. */
  minutes: `toInt64(minute) * ${MINUTE_MS}`,
  /** As the scheduler asks: one offset for all runs, and 0.2 s at most until the page has come. */
  scrapes: `intDiv(toInt64(minute) * ${MINUTE_MS} + 17345 + 80 + sipHash64(minute, 'page') % 120, 1000) * 1000`,
  /** As a scheduler would ask that draws up to 3 s of chance at each run. */
  jittered: `intDiv(toInt64(minute) * ${MINUTE_MS} + 17345 + sipHash64(minute, 'jitter') % 3000 + 80 + sipHash64(minute, 'page') % 120, 1000) * 1000`
} as const

function insertSql(titleIds: readonly string[], firstIndex: number, fromMs: number, minutes: number): string {
  const seeded = (name: string) => `cityHash64(index, minute, '${name}')`
  // Sum of four evenly spread numbers, less their mean: nearly a bell of width 0.58.
  const bell = (name: string) =>
    `((${seeded(name)} % 1024) + (intDiv(${seeded(name)}, 1024) % 1024) + (intDiv(${seeded(name)}, 1048576) % 1024) + (intDiv(${seeded(name)}, 1073741824) % 1024) - 2046) / 1024`
  // A walk folded between two walls at ±wall.
  const folded = (walk: string, wall: string) =>
    `abs(positiveModulo(${walk} + ${wall}, 4 * ${wall}) - 2 * ${wall}) - ${wall}`
  return `
    INSERT INTO title_count__0 (title_id, ts, online, sessions, lobby_players, position)
    SELECT title_id, fromUnixTimestamp64Milli(${fromMs} + ${SCHEDULES.scrapes}, 'UTC'), online,
      intDiv(lobby_players + 3, 4 + index % 9), lobby_players, bitOr(bitShiftLeft(toUInt64(1), 48), minute * 200 + index)
    FROM (
      SELECT title_id, index, minute, online,
        toUInt32(floor(online * (0.45 + 0.2 * sin(minute / 30 + index)))) AS lobby_players
      FROM (
        SELECT title_id, index, minute,
          toUInt32(greatest(0, round(level * (1 + 0.6 * sin(2 * pi() * (minute / 1440 + index / 24))) + ${folded('walk', 'wall')}))) AS online
        FROM (
          SELECT index, title_id, level, wall,
            range(0, ${minutes}) AS every,
            arrayCumSum(arrayMap(minute -> round(${bell('step')} * 1.7 * sqrt(2 * level / 30)), every)) AS walks
          FROM (
            SELECT toUInt32(number + ${firstIndex}) AS index, [${titleIds.map((id) => `'${id}'`).join(', ')}][number + 1] AS title_id,
              ${PEOPLE / HARMONIC} / (2 * index + 1) AS level, ceil(2 * sqrt(level)) + 1 AS wall
            FROM numbers(${titleIds.length})
          )
        )
        ARRAY JOIN every AS minute, walks AS walk
      )
    )`
}
