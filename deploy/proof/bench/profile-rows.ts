import { join } from 'node:path'
import { type ClickHouse, migratePostgres, openPglite, type Postgres } from '@gamenet/engines'
import { openFilledTables } from './filled-tables.js'
import { type Conditions, scaled } from './measurement.js'

/*
 * 100,000 users, made by the engines themselves as the projections and the write side leave them: each was seen on about 60 days
 * of the last year in three games, is linked to a gamertag that stands on some 20 boards, and has ten achievements.
 */

const USERS = 100_000
const DAYS = 60
const BOARDS = 2000
const BOARDS_A_USER = 20
const USERS_AN_INSERT = 10_000

export type ProfileRows = {
  readonly tables: ClickHouse
  readonly writes: Postgres
  readonly users: number
  /** Names of the users from 0 on. */
  username(index: number): string
}

/** Opens tables and a write side that hold the rows, making them unless an earlier measurement of this run has. */
export async function openProfileRows({ directory, scale, note }: Conditions): Promise<ProfileRows> {
  const path = join(directory, 'profile-rows')
  const users = scaled(USERS, scale, 1000)
  const writes = await openPglite({ dir: join(path, 'writes') })
  const tables = await openFilledTables(path, async (tables) => {
    await migratePostgres(writes)
    note(`making ${users} users`)
    await fillOnce(tables)
    for (let first = 0; first < users; first += USERS_AN_INSERT) {
      await fill(tables, first, Math.min(USERS_AN_INSERT, users - first))
    }
    await writes.query(PROFILES, [users])
  })
  return { tables, writes, users, username: (index) => `User ${String(index).padStart(6, '0')}` }
}

const PROFILES = `
  INSERT INTO profile (user_key, username, linked_gamertag, session_gamertag, bio, social_links, revision, changed_at)
  SELECT lower(u.username), u.username, replace(u.username, 'User', 'Tag'), replace(u.username, 'User', 'Tag'),
    'Evenings, mostly.', '[{"platform": "Video", "url": "https://video.example.org/user"}]', nextval('revision'), now()
  FROM (SELECT 'User ' || lpad(n::text, 6, '0') AS username FROM generate_series(0, $1::int - 1) AS n) AS u`

const USER = `concat('user ', leftPad(toString(number), 6, '0'))`

async function fillOnce({ rebuild }: ClickHouse): Promise<void> {
  await rebuild.execute(`
    INSERT INTO leaderboard__0 (title_id, leaderboard_id, ts, name, listed, position)
    SELECT ${titleOf('number')}, toUInt32(number), now64(3), concat('Track ', toString(number)), true, 1
    FROM numbers(${BOARDS})`)
  await rebuild.execute(`
    INSERT INTO scrape__0 (source, ts, duration_ms, outcome, published, reason, position)
    SELECT 'players', now64(3) - INTERVAL number MINUTE, 100, 'succeeded', 1, '', number FROM numbers(525600)`)
}

function titleOf(board: string): string {
  return `concat('4d53', leftPad(lower(hex(toUInt16(${board} % 200))), 4, '0'))`
}

/** The rows of some users, in one insert a table. */
async function fill({ rebuild }: ClickHouse, first: number, count: number): Promise<void> {
  const users = `(SELECT number + ${first} AS number FROM numbers(${count})) AS u`
  await rebuild.execute(`
    INSERT INTO presence_latest__0 (user_key, field, value, value_key, ts, version)
    SELECT ${USER}, f.1, f.2, f.3, now64(3) - INTERVAL (number % 86400) SECOND, 1
    FROM ${users}
    ARRAY JOIN [('username', concat('User ', leftPad(toString(number), 6, '0')), ''), ('seen', 'online', ''),
      ('period', '60', ''), ('online', 'Halo 2', ''), ('game', 'Halo 2', ''),
      ('gamertag', concat('Tag ', leftPad(toString(number), 6, '0')), concat('tag ', leftPad(toString(number), 6, '0')))] AS f`)
  await rebuild.execute(`
    INSERT INTO presence_day__0 (user_key, day, sightings, online_sightings, last_at, seconds, position)
    SELECT ${USER}, today() - d * 6, 90, 90, now64(3),
      map('Halo 2', toUInt32(3600 + number % 600), 'Game B', toUInt32(1200), 'Game C', toUInt32(900)), 1
    FROM ${users} ARRAY JOIN range(${DAYS}) AS d`)
  await rebuild.execute(`
    INSERT INTO achievement_unlock__0 (user_key, achievement_id, username, points, ts, age)
    SELECT ${USER}, a, ${USER}, 10, now64(3) - INTERVAL a DAY, 1
    FROM ${users} ARRAY JOIN range(1, 11) AS a`)
  await rebuild.execute(`
    INSERT INTO player_entry__0 (player_key, title_id, leaderboard_id, player, occurrence, is_gone, rank, place, rating, time_ms,
      first_at, ts, version)
    SELECT concat('tag ', leftPad(toString(number), 6, '0')), ${titleOf('board')}, toUInt32(board),
      concat('Tag ', leftPad(toString(number), 6, '0')), 1, false, 1 + cityHash64(number, b) % 1000, 0, '1:02.345', 62345,
      now64(3), now64(3), 1
    FROM (
      SELECT number, b, (number * 7 + b * 97) % ${BOARDS} AS board FROM ${users} ARRAY JOIN range(${BOARDS_A_USER}) AS b
    )`)
}
