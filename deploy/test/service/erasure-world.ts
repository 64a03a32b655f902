import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouse, migratePostgres, openChdb, type Postgres } from '@gamenet/engines'
import { createPeople, type People, publish, sealKeys } from '@gamenet/ingest'
import { createProjector, migrate, type Projector } from '@gamenet/projector'
import { foldInline, readInline } from '@gamenet/projector/testing'
import {
  achievementUnlockTopic,
  type PresenceSeen,
  type ProfileChanged,
  type ProfileRated,
  presenceTopic,
  profileTopic,
  ratingTopic,
  topics
} from '@gamenet/schemas'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import type { Test } from 'tap'
import { type EraseNeeds, eraseUser, finishErasures } from '../../src/operate/erase/erase-user.js'
import { readLedger } from '../../src/stores/ledger.js'
import { type LogChoice, type OpenLog, openLog } from '../../src/stores/log.js'
import { continueNumbers } from '../../src/stores/older-writes.js'

/** Words that occur in no other text. */
const WORDS = ['zebrafish', 'quagga', 'ocelots', 'lemurs']
export const USER = 'ZebraFish'
const OTHERS = ['ann', 'ben']
export const USERS = [USER, ...OTHERS]
const logger = pino({ level: 'silent' })

export type WorldUnderTest = {
  readonly folder: string
  readonly writes: Postgres
  readonly log: OpenLog
  readonly logChoice: LogChoice
  readonly clickhouse: ClickHouse
  readonly projector: Projector
  readonly closeTables: () => Promise<void>
  readonly people: People
  readonly registry: Registry
}

export async function openWorld(
  t: Test,
  open: (folder: string) => Promise<Postgres>,
  kafka?: LogChoice
): Promise<WorldUnderTest> {
  const folder = t.testdir({})
  const writes = await open(folder)
  t.teardown(() => writes.close())
  await migratePostgres(writes)
  const registry = new Registry()
  const people = createPeople({ writes: async () => writes, registry })
  const logChoice = kafka ?? { engine: 'lmdb', path: join(folder, 'log'), epoch: 1 }
  const log = await openLog(logChoice, 'test')
  t.teardown(() => log.close())
  const tables = await openTables({ folder, log, writes }, 'tables')
  t.teardown(() => tables.closeTables())
  return { folder, writes, log, logChoice, people, registry, ...tables }
}

export async function openTables(
  { folder, log, writes }: Pick<WorldUnderTest, 'folder' | 'log' | 'writes'>,
  name: string,
  rebuildOn = (tables: ClickHouse['rebuild']): ClickHouse['rebuild'] => tables
) {
  const clickhouse = await openChdb({ path: join(folder, name) })
  await migrate(clickhouse.control)
  const projector = createProjector({
    tables: { loader: clickhouse.loader, projections: clickhouse.projections, rebuild: rebuildOn(clickhouse.rebuild) },
    startReading: readInline(log, topics),
    sealKeys: (ids) => sealKeys(writes, ids),
    folding: foldInline(),
    registry: new Registry(),
    logger,
    onChange: () => undefined
  })
  projector.start()
  const closeTables = async () => {
    await projector.stop()
    await clickhouse.close()
  }
  return { clickhouse, projector, closeTables }
}

export function needsOf({ writes, clickhouse, projector }: WorldUnderTest): EraseNeeds {
  return {
    writes,
    tables: clickhouse.control,
    whenCaughtUp: () => projector.caughtUp(),
    stepsEnded: () => projector.stepsEnded(),
    ownsTables: true,
    onChange: async () => undefined,
    onProgress: () => undefined,
    signal: new AbortController().signal,
    // Everything that is read here was read before.
    keyCacheMs: 0
  }
}

export function sighting(username: string, minute: number): PresenceSeen {
  const observedAt = new Date(Date.UTC(2026, 4, 1, 23, 30) + minute * 60_000).toISOString().replace('.000', '')
  const gamertag = username === USER ? 'Quagga 7' : `${username} plays`
  return { username, gamertag, state: 'online', game: 'Chess', periodSeconds: 60, observedAt }
}

/** Creates all kinds of data about the user, and about two related users. */
export async function fill(world: WorldUnderTest): Promise<void> {
  const { writes, log, people, projector } = world
  const at = '2026-05-02T00:00:00Z'
  const profiles = USERS.map((username, number): ProfileChanged => {
    const bio = username === USER ? 'I like ocelots' : 'hello'
    return {
      username,
      revision: number + 1,
      changedAt: at,
      avatar_url: '',
      avatar_hue: 3,
      chat_profile_url: '',
      display_name_override: username === USER ? 'Zebrafish!' : null,
      linked_gamertag: username === USER ? 'Quagga 7' : '',
      console_verified: true,
      bio,
      social_links: []
    }
  })
  const ratings = USERS.flatMap((username) =>
    USERS.filter((rater) => rater !== username).map((raterUsername, number): ProfileRated => {
      const comment = raterUsername === USER ? 'better than lemurs' : 'good'
      return { username, raterUsername, stars: 4, comment, revision: 10 + number, ratedAt: at }
    })
  )
  for (const { username, linked_gamertag, bio, revision } of profiles) {
    await writes.query(
      `INSERT INTO profile (user_key, username, linked_gamertag, bio, revision, changed_at) VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (user_key) DO NOTHING`,
      [username.toLowerCase(), username, linked_gamertag, bio, revision, at]
    )
  }
  for (const rating of ratings) {
    const keys = [rating.username.toLowerCase(), rating.raterUsername.toLowerCase()]
    await writes.query(
      `INSERT INTO rating (user_key, rater_key, username, rater, stars, comment, rated_at, revision)
       VALUES ($1, $2, $3, $4, 4, $5, $6, $7) ON CONFLICT (user_key, rater_key) DO NOTHING`,
      [...keys, rating.username, rating.raterUsername, rating.comment, at, rating.revision]
    )
    await writes.query(`INSERT INTO outbox (topic, people, event) VALUES ('rating', $1, $2)`, [
      keys,
      JSON.stringify(rating)
    ])
    await writes.query('SELECT pg_notify($1, $2)', ['gamenet_changed', JSON.stringify(['rating', keys[0]])])
  }
  const source = { source: '/test' }
  const sightings = USERS.flatMap((username) => Array.from({ length: 60 }, (_, minute) => sighting(username, minute)))
  await publish(log, presenceTopic, sightings, source, people)
  await publish(log, profileTopic, profiles, source, people)
  await publish(log, ratingTopic, ratings, source, people)
  const unlocks = USERS.map((username) => ({ username, achievementId: 1, points: 5, unlockedAt: at }))
  await publish(log, achievementUnlockTopic, unlocks, source, people)
  await projector.caughtUp()
  // As each start does: these numbers are not from the sequences.
  await continueNumbers(writes)
}

/** Tables with one of the words in a column of any type. */
export async function tablesThatName({ control }: ClickHouse): Promise<string[]> {
  const tables = await control.rows(
    `SELECT t.name AS name FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' AND t.total_rows > 0`
  )
  const counts = tables.map(
    ({ name }) =>
      `SELECT '${name}' AS name, count() AS rows FROM ${name} AS t
       WHERE multiSearchAny(lower(toString(tuple(t.*))), {words: Array(String)})`
  )
  const found = await control.rows(counts.join('\nUNION ALL\n'), { words: WORDS })
  return found.filter(({ rows }) => Number(rows) > 0).map(({ name, rows }) => `${name}: ${rows}`)
}

/** Conditions of mutations contain the hash of a name and the key of the hash: anyone with both can guess names. */
export async function storedMutations({ control }: ClickHouse): Promise<string[]> {
  const rows = await control.rows(
    // Those of migrations are about bookkeeping.
    `SELECT m.command AS command FROM system.mutations AS m WHERE m.table != 'checkpoint'`
  )
  return rows.map(({ command }) => String(command))
}

/** Tables whose replaced parts are still removed at once, as during an erasure. */
async function tablesWithShortLife({ control }: ClickHouse): Promise<string[]> {
  const rows = await control.rows(
    `SELECT t.name AS name FROM system.tables AS t
     WHERE t.database = currentDatabase() AND position(t.create_table_query, 'old_parts_lifetime') > 0`
  )
  return rows.map(({ name }) => `${name} has old_parts_lifetime`)
}

export async function writesThatName(writes: Postgres): Promise<string[]> {
  const tables = await writes.query<{ name: string }>(
    `SELECT t.tablename AS name FROM pg_tables AS t WHERE t.schemaname = 'public'`
  )
  const found: string[] = []
  for (const { name } of tables) {
    const [row] = await writes.query<{ rows: string }>(
      `SELECT count(*) AS rows FROM ${name} AS t WHERE t::text ~* $1`,
      [WORDS.join('|')]
    )
    if (Number(row?.rows) > 0) found.push(`${name}: ${row?.rows}`)
  }
  return found
}

export async function filesThatName(folder: string): Promise<string[]> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true })
  const found: string[] = []
  for (const file of files.filter((each) => each.isFile())) {
    const path = join(file.parentPath, file.name)
    // Merges remove files at any time.
    const bytes = await readFile(path).catch(() => Buffer.alloc(0))
    const text = bytes.toString('latin1').toLowerCase()
    if (WORDS.some((word) => text.includes(word))) found.push(path.slice(folder.length))
  }
  return found
}

/** Returns the rows of the two other users in the read tables. */
export async function rowsOfOthers({ clickhouse: { control } }: WorldUnderTest) {
  return await Promise.all([
    control.rows(
      `SELECT d.user_key, d.day, d.sightings, d.seconds FROM presence_day AS d FINAL WHERE d.user_key IN ('ann', 'ben') ORDER BY ALL`
    ),
    control.rows(
      `SELECT r.user_key, r.rater_key, r.stars FROM rating AS r FINAL WHERE r.user_key IN ('ann', 'ben') AND r.rater_key IN ('ann', 'ben') ORDER BY ALL`
    ),
    control.rows(`SELECT p.user_key, p.bio FROM profile AS p FINAL WHERE p.user_key IN ('ann', 'ben') ORDER BY ALL`),
    control.rows(`SELECT s.* FROM achievement_score AS s FINAL WHERE s.user_key IN ('ann', 'ben') ORDER BY ALL`)
  ])
}

/** Where an erasure is interrupted: at its n-th use of the engines, or at the first statement with this text. */
type Cut = number | string

/** Erases the user with interruptions at these places, then completes it; returns the faults. */
export async function leftBehindCuts(world: WorldUnderTest, [first = 1, ...later]: readonly Cut[]): Promise<string[]> {
  await world.writes.query('DELETE FROM erasure')
  await fill(world)
  await eraseUser(interrupted(world, first), USER).catch(() => undefined)
  for (const cut of later) await finishErasures(interrupted(world, cut)).catch(() => undefined)
  const isKnown = (await readLedger(world.writes)).length === 0
  if (isKnown) await eraseUser(needsOf(world), USER)
  else await finishErasures(needsOf(world))
  const open = (await readLedger(world.writes)).filter(({ doneAt }) => doneAt === null)
  return [
    ...(await tablesThatName(world.clickhouse)),
    ...(await writesThatName(world.writes)),
    ...(await storedMutations(world.clickhouse)),
    ...(await tablesWithShortLife(world.clickhouse)),
    ...open.map(({ nameHash }) => `${nameHash} is not said to be done`),
    ...((await finishErasures(needsOf(world))) === 0 ? [] : ['it was done twice'])
  ]
}

/** Dependencies that fail at a cut and from then on: the process is dead. */
function interrupted(world: WorldUnderTest, cut: Cut): EraseNeeds {
  let left = typeof cut === 'number' ? cut : Number.POSITIVE_INFINITY
  const use = <Result>(work: () => Promise<Result>, sql = ''): Promise<Result> => {
    left = typeof cut === 'string' && sql.includes(cut) ? -1 : left - 1
    return left < 0 ? Promise.reject(new Error('killed')) : work()
  }
  const needs = needsOf(world)
  const { writes, tables } = needs
  return {
    ...needs,
    writes: {
      ...writes,
      query: (sql, values) => use(() => writes.query(sql, values)),
      transaction: (work) =>
        use(() =>
          writes.transaction((transaction) =>
            work({ ...transaction, query: (sql, values) => use(() => transaction.query(sql, values)) })
          )
        ),
      erase: (names) => use(() => writes.erase(names))
    },
    tables: {
      ...tables,
      execute: (sql, parameters) => use(() => tables.execute(sql, parameters), sql),
      rows: (sql, parameters) => use(() => tables.rows(sql, parameters), sql)
    },
    whenCaughtUp: (names) => use(() => needs.whenCaughtUp(names))
  }
}
