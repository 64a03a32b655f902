import type { Lane } from '@gamenet/engines'
import { FIRST_GENERATION, generationName, type Parameters, withServing } from '@gamenet/schemas'
import { test } from 'tap'
import { unlocksOfUser } from '../src/queries/achievement-unlock.js'
import { networkSeriesQueries } from '../src/queries/network-count.js'
import { playDays, playTotals, presenceFacts } from '../src/queries/play-time.js'
import { entriesOfPlayers } from '../src/queries/player-entry.js'
import { cutAtDays, cutAtHours, uncut } from '../src/queries/series.js'
import { titleActivity, titleSeriesQueries } from '../src/queries/title-count.js'
import { lastSightings, playedSeconds } from '../src/queries/user-game.js'
import { boardStats } from '../src/queries/user-score.js'
import { DAY_MS, MINUTE_MS } from './plain-counts.js'
import { openStoredTables } from './stored-tables.js'

const FIRST_MS = Date.UTC(2026, 0, 1)
const MINUTES = 40_000
const TITLES = 20

/** Returns the number of granules that a statement reads, and that of the table. */
async function granules(
  tables: Lane,
  sql: string,
  parameters: Parameters,
  table: string
): Promise<{ read: number; of: number }> {
  const { rows } = withServing(tables, FIRST_GENERATION)
  const lines = (await rows(`EXPLAIN indexes = 1 ${sql}`, parameters)).map((row) => String(row.explain))
  let read = 0
  let of = 0
  for (const [at, line] of lines.entries()) {
    if (!line.includes(`ReadFromMergeTree (`) || !line.includes(`.${generationName(table, 0)})`)) continue
    const rest = lines.slice(at + 1)
    const end = rest.findIndex((other) => other.includes('ReadFromMergeTree ('))
    const counts = rest
      .slice(0, end < 0 ? undefined : end)
      .flatMap((other) => /Granules: (\d+)\/(\d+)/.exec(other)?.slice(1, 3).map(Number) ?? [])
    // Pairs of (left over, given) by one index after the other: the last left over is read, the first given is all.
    read += counts.at(-2) ?? 0
    of += counts[1] ?? 0
  }
  return { read, of }
}

test('a query about one title or metric reads by the primary key, with any rows', async (t) => {
  const { clickhouse } = await openStoredTables()
  await clickhouse.loader.execute(`
    INSERT INTO title_count__0 (title_id, ts, online, position)
    SELECT leftPad(lower(hex(intDiv(number, ${MINUTES}))), 8, '0'),
      toDateTime64(${FIRST_MS / 1000} + number % ${MINUTES} * 60, 3, 'UTC'), number % 100, number
    FROM numbers(${TITLES * MINUTES})`)
  await clickhouse.loader.execute(`
    INSERT INTO network_count__0
    SELECT ['lobbies', 'online', 'registered'][1 + intDiv(number, 200000)],
      toDateTime64(${FIRST_MS / 1000} + number % 200000 * 60, 3, 'UTC'), number % 100, number
    FROM numbers(600000)`)
  const tables = clickhouse.readers
  const window = { fromMs: FIRST_MS + DAY_MS + 7 * MINUTE_MS, toMs: FIRST_MS + 20 * DAY_MS + 9 * MINUTE_MS }
  const day = { from: window.fromMs, to: window.fromMs + DAY_MS }
  const titleId = '00000007'

  const samples = await granules(tables, titleSeriesQueries.shown.samples.sql, { titleId, ...day }, 'title_count')
  t.ok(samples.of > 90 && samples.read <= 3, `a day of one title: ${JSON.stringify(samples)}`)
  const edges = await granules(
    tables,
    titleSeriesQueries.shown.buckets.sql,
    { titleId, width: 3600, ...cutAtHours(window) },
    'title_count'
  )
  t.ok(edges.of > 90 && edges.read <= 4, `the edges of weeks of one title: ${JSON.stringify(edges)}`)
  const whole = await granules(
    tables,
    titleSeriesQueries.shown.buckets.sql,
    { titleId, width: 300, ...uncut(window) },
    'title_count'
  )
  t.ok(whole.of > 90 && whole.read <= 6, `weeks of one title by samples: ${JSON.stringify(whole)}`)
  const all = await granules(tables, titleActivity.sql, cutAtDays(window), 'title_count')
  t.ok(all.of > 90 && all.read <= TITLES * 4, `the edges of weeks of all titles: ${JSON.stringify(all)}`)

  const metric = 'online'
  const online = networkSeriesQueries.online.shown
  const network = await granules(tables, online.samples.sql, { metric, ...day }, 'network_count')
  t.ok(network.of > 70 && network.read <= 3, `a day of the network: ${JSON.stringify(network)}`)
  const peaks = await granules(
    tables,
    online.buckets.sql,
    { metric, width: 3600, ...cutAtHours(window) },
    'network_count'
  )
  t.ok(peaks.of > 70 && peaks.read <= 4, `the edges of weeks of the network: ${JSON.stringify(peaks)}`)
})

const USERS = 5000

test('a query about one user reads by the primary key, with any rows', async (t) => {
  const { clickhouse } = await openStoredTables()
  const user = `concat('user ', leftPad(toString(number % ${USERS}), 6, '0'))`
  const from = `FROM numbers(${60 * USERS})`
  const day = `toDate('2026-03-14') - intDiv(number, ${USERS})`
  for (const statement of [
    `presence_latest__0 (user_key, field, value) SELECT ${user}, toString(intDiv(number, ${USERS})), 'x' ${from}`,
    `presence_day__0 (user_key, day, sightings, seconds) SELECT ${user}, ${day}, 1, map('Race', 60) ${from}`,
    `presence__0 (user_key, ts, is_online, game) SELECT ${user}, toDateTime64(${day}, 3, 'UTC'), true, 'Race' ${from}`,
    `achievement_unlock__0 (user_key, achievement_id) SELECT ${user}, intDiv(number, ${USERS}) ${from}`,
    `player_entry__0 (player_key, title_id, leaderboard_id) SELECT ${user}, '4d530001', intDiv(number, ${USERS}) ${from}`
  ]) {
    await clickhouse.loader.execute(`INSERT INTO ${statement}`)
  }
  const userKey = 'user 002500'
  const days = { fromDay: '2026-02-01', toDay: '2026-03-01' }
  for (const [what, { sql }, parameters, table] of [
    ['presence', presenceFacts, { userKey, nowEnd: Date.parse('2026-03-15') }, 'presence_latest'],
    ['play time', playTotals, { userKey }, 'presence_day'],
    ['days', playDays, { userKey, ...days }, 'presence_day'],
    ['seconds by game', playedSeconds, { userKey }, 'presence_day'],
    ['sightings', lastSightings, { userKey }, 'presence'],
    ['unlocks', unlocksOfUser, { userKey }, 'achievement_unlock'],
    ['boards', boardStats, { playerKey: userKey }, 'player_entry'],
    ['scores', entriesOfPlayers, { keys: [userKey], titleId: '' }, 'player_entry']
  ] as const) {
    const { read, of } = await granules(clickhouse.readers, sql, parameters, table)
    t.ok(of > 30 && read >= 1 && read <= 3, `${what}: ${read} of ${of}`)
  }
})
