import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type ClickHouse, openChdb } from '@gamenet/engines'
import { migrate, type Projector, projections } from '@gamenet/projector'
import { FIRST_GENERATION, withTableNames } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { type LogChoice, openLog } from '../../src/wiring/log.js'
import { type Conditions, figure, type Measurement, type Result, scaled } from './measurement.js'
import { projectorOn } from './projector-on.js'

/*
 * Event tables that the engine itself makes, and two ways to fill the read tables of them: a rebuild, and the same statements as
 * bare SQL, each over everything at once, with as many threads, and as much memory as it wants.
 */

const COUNT_EVENTS = 20_000_000
const BOARD_EVENTS = 20_000_000
const TITLES = 200
const ENTRIES = 1000
const FIRST_MS = Date.UTC(2025, 0, 1)
/** As often as the command line asks. */
const LOOK_MS = 500
const COUNTS_A_SECOND = 1_000_000
/** A statement over all of 20 M changes holds several times what the service lets one have. */
const BARE_MEMORY_BYTES = 12 * 2 ** 30
const BARE_LIMITS = { seconds: 3600, memoryBytes: BARE_MEMORY_BYTES, threads: 1 }

const COUNTS_SQL = `
  INSERT INTO event_title_count__0 (epoch, partition, offset, source, import_id, observed_at, title_id, online, sessions, lobby_players)
  SELECT 0, 0, n.number, '/bench', '', fromUnixTimestamp64Milli(toInt64({first: Int64} + intDiv(n.number, ${TITLES}) * 60000), 'UTC'),
    lower(hex(toUInt32(1297285120 + n.number % ${TITLES}))), sipHash64(n.number) % 150, NULL, NULL
  FROM numbers({from: UInt64}, {count: UInt64}) AS n`

/** Boards of a thousand entries, all of them new at first, each then improved repeatedly. */
const ENTRIES_SQL = `
  INSERT INTO event_leaderboard_entry__0 (epoch, partition, offset, source, import_id, observed_at, title_id, leaderboard_id,
    player, player_key, occurrence, change, rating, time_ms, stated_rank, ord, step, details)
  SELECT 0, 0, n.number, '/bench', '', fromUnixTimestamp64Milli(toInt64({first: Int64} + n.number * 10), 'UTC'),
    lower(hex(toUInt32(1297285120 + intDiv(n.number % {boards: UInt64}, 20)))), n.number % {boards: UInt64},
    concat('Player ', toString(intDiv(n.number, {boards: UInt64}) % ${ENTRIES})) AS name, lower(name), 1,
    if(n.number < {boards: UInt64} * ${ENTRIES}, 'new', 'updated'), toString(2147483647 - made_ms), made_ms, NULL,
    toInt64(made_ms) * 65536 + intDiv(n.number, {boards: UInt64}) % ${ENTRIES}, 1, ''
  FROM (
    SELECT s.number AS number,
      toUInt32(60000 + (intDiv(s.number, {boards: UInt64}) % ${ENTRIES}) * 37 + sipHash64(s.number) % 30000) AS made_ms
    FROM numbers({from: UInt64}, {count: UInt64}) AS s) AS n`

/** An entry's states, each with the rating and time of the one before. */
const SUCCESSIVE = `
  SELECT h.*, lagInFrame(h.rating) OVER entry AS rating_before, lagInFrame(h.time_ms) OVER entry AS time_before,
    row_number() OVER entry = 1 AS is_first
  FROM leaderboard_history__0 AS h FINAL
  WINDOW entry AS (PARTITION BY h.title_id, h.leaderboard_id, h.player, h.occurrence ORDER BY h.ts, h.offset
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)`

const CHANGE_COLUMNS = `ts, title_id, leaderboard_id, epoch, partition, offset, recorded_epoch, recorded_partition, recorded_offset,
  is_change, change, player, player_key, occurrence, previous_rating, new_rating, previous_time_ms, new_time_ms, is_time, version`

/**
 * What SQL can say of boards, into the same tables: the entries with their ranks, the changes in both orders. The ranks around
 * each change, who reached a goal and who held a record it cannot: these columns and tables stay empty.
 */
const BOARDS_SQL = [
  `INSERT INTO leaderboard_entry__0 (title_id, leaderboard_id, player, occurrence, player_key, is_gone, rank, place, rating,
     time_ms, stated_rank, ord, step, details, ts, version)
   SELECT l.title_id, l.leaderboard_id, l.player, l.occurrence, l.player_key, false,
     sum(l.step) OVER board AS rank, row_number() OVER board AS place,
     l.rating, l.time_ms, l.stated_rank, l.ord, l.step, l.details, l.ts, l.position
   FROM (
     SELECT h.title_id AS title_id, h.leaderboard_id AS leaderboard_id, h.player AS player, h.occurrence AS occurrence,
       any(h.player_key) AS player_key, max(h.offset) AS position,
       argMax((h.rating, h.time_ms, h.stated_rank, h.ord, h.step, h.details, h.ts, h.is_gone), (h.ts, h.offset)) AS state,
       state.1 AS rating, state.2 AS time_ms, state.3 AS stated_rank, state.4 AS ord, state.5 AS step, state.6 AS details,
       state.7 AS ts
     FROM leaderboard_history__0 AS h FINAL
     GROUP BY h.title_id, h.leaderboard_id, h.player, h.occurrence
     HAVING NOT state.8) AS l
   WINDOW board AS (PARTITION BY l.title_id, l.leaderboard_id ORDER BY l.ord ROWS UNBOUNDED PRECEDING)`,
  `INSERT INTO leaderboard_change__0 (${CHANGE_COLUMNS})
   SELECT s.ts, s.title_id, s.leaderboard_id, s.epoch, s.partition, s.offset, s.epoch, s.partition, s.offset,
     true, if(s.is_first, 'new', 'updated'), s.player, s.player_key, s.occurrence,
     if(s.is_first, NULL, s.rating_before), s.rating, if(s.is_first, NULL, s.time_before), s.time_ms,
     s.time_ms IS NOT NULL, s.offset
   FROM (${SUCCESSIVE}) AS s`,
  `INSERT INTO leaderboard_feed__0 (${CHANGE_COLUMNS}) SELECT ${CHANGE_COLUMNS} FROM leaderboard_change__0`
]

/** Rebuilds as fast as the engine, or nearly so. */
export const rebuildCounts: Measurement = {
  name: 'rebuild-counts',
  claim: 'a rebuild fills counts and their rollups at the speed of bare SQL, or nearly so',
  run: (conditions) =>
    measured(conditions, {
      what: 'title_count and its rollups',
      topic: 'title-count',
      eventsSql: COUNTS_SQL,
      projection: 'title-count',
      bare: ['title-count', 'title-count-hour', 'title-count-day'].map(bareStatement),
      events: scaled(COUNT_EVENTS, conditions.scale, 200_000),
      share: 0.8,
      least: COUNTS_A_SECOND
    })
}

export const rebuildBoards: Measurement = {
  name: 'rebuild-boards',
  claim: 'a rebuild fills boards and their history at the speed of bare SQL, or nearly so',
  run: (conditions) =>
    measured(conditions, {
      what: 'boards and history',
      topic: 'leaderboard-entry',
      eventsSql: ENTRIES_SQL,
      projection: 'leaderboard-history',
      bare: [...['leaderboard-history', 'entry-time'].map(bareStatement), ...BOARDS_SQL, bareStatement('player-entry')],
      events: scaled(BOARD_EVENTS, conditions.scale, 50_000),
      share: 0.7
    })
}

async function measured(conditions: Conditions, asked: Measured): Promise<Result[]> {
  const { directory } = conditions
  const choice: LogChoice = { engine: 'lmdb', path: await mkdtemp(join(directory, 'log-')), epoch: 0 }
  const log = await openLog(choice, 'bench')
  const tables = await openChdb({
    path: await mkdtemp(join(directory, 'chdb-')),
    threadPoolSize: 16,
    limits: { loader: BARE_LIMITS },
    memoryBytes: BARE_MEMORY_BYTES
  })
  await migrate(tables.control)
  await makeEvents(conditions, tables, asked)
  const projector = projectorOn(tables, choice, new Registry())
  try {
    projector.start()
    return await compared({ conditions, tables, projector }, asked)
  } finally {
    await projector.stop()
    await log.close()
    await tables.close()
  }
}

async function makeEvents(
  { note }: Conditions,
  { rebuild, control }: ClickHouse,
  { topic, eventsSql, events }: Measured
) {
  note(`making ${figure(events)} events of ${topic}`)
  const boards = Math.max(1, Math.round(events / ENTRIES / 10))
  const part = 2_000_000
  for (let from = 0; from < events; from += part) {
    await rebuild.execute(eventsSql, { first: FIRST_MS, from, count: Math.min(part, events - from), boards })
  }
  // As if the live projections had consumed all events.
  const consumers = projections.filter(({ from }) => from.name === topic).map(({ name }) => `project:${name}`)
  const lines = [`load:${topic}`, ...consumers].map((name) => JSON.stringify([name, 0, 0, events]))
  await control.insert('checkpoint', ['name', 'epoch', 'partition', 'next'], Buffer.from(`${lines.join('\n')}\n`))
}

type Measured = {
  readonly what: string
  readonly topic: string
  /** Makes its events in `{from}` and the `{count}` behind it; `{boards}` so that each entry changes ten times. */
  readonly eventsSql: string
  readonly projection: string
  readonly bare: readonly string[]
  readonly events: number
  /** Of the bare SQL's speed. */
  readonly share: number
  readonly least?: number
}

async function compared(
  needs: { readonly conditions: Conditions; readonly tables: ClickHouse; readonly projector: Projector },
  { what, projection, bare, events, share, least }: Measured
): Promise<Result[]> {
  const { conditions, tables, projector } = needs
  // Into the tables that serve: the estimate of a rebuild's time reads them.
  conditions.note(`${what}: bare SQL`)
  const [bareBegun, bareCpu] = [performance.now(), process.cpuUsage()]
  for (const sql of bare) await tables.loader.execute(sql, withTableNames(sql, {}, FIRST_GENERATION.nameOf))
  const bareSeconds = (performance.now() - bareBegun) / 1000
  const ofBare = processorSeconds(bareCpu)
  conditions.note(`${what}: rebuild`)
  const { seconds, processor, estimate } = await rebuilt(projector, projection)
  return [
    {
      what: `${what}, events a second`,
      measured: events / seconds,
      unit: '/s',
      baseline: { what: 'bare SQL', measured: events / bareSeconds },
      reach: { bound: 'at least', value: share, of: 'ratio' },
      detail: `${figure(events)} events in ${figure(seconds)} s, by ${figure(processor)} s of processor; bare SQL by ${figure(ofBare)} s`
    },
    ...(least === undefined
      ? []
      : [
          {
            what: `${what}, as a figure`,
            measured: events / seconds,
            unit: '/s',
            reach: { bound: 'at least' as const, value: least, of: 'measured' as const }
          }
        ]),
    ...(estimate === undefined
      ? []
      : [
          {
            what: `${what}: error of the time reported at half time`,
            measured: (100 * Math.abs(estimate - seconds)) / seconds,
            unit: '%',
            reach: { bound: 'at most' as const, value: 25, of: 'measured' as const }
          }
        ])
  ]
}

/** What this process has taken of the processors since, all threads together: it tells more than time where others work too. */
function processorSeconds(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1e6
}

/** How long a fill took, and what it was estimated to take at half of its time. */
async function rebuilt(
  { rebuilds }: Projector,
  projection: string
): Promise<{ readonly seconds: number; readonly processor: number; readonly estimate: number | undefined }> {
  await rebuilds.start(projection)
  const cpu = process.cpuUsage()
  const estimates: { readonly at: number; readonly seconds: number }[] = []
  for (;;) {
    const status = (await rebuilds.list()).find((each) => each.projection === projection)
    if (status === undefined || status.state === 'failed') {
      throw new Error(`the rebuild of ${projection} failed: ${status?.reason ?? 'it is not there any more'}`)
    }
    const { state, startedAt, changedAt, progress } = status
    if (state === 'filled') {
      const seconds = (Date.parse(changedAt) - Date.parse(startedAt)) / 1000
      const processor = processorSeconds(cpu)
      await rebuilds.cancel(projection)
      return { seconds, processor, estimate: estimates.findLast(({ at }) => 2 * at <= seconds)?.seconds }
    }
    const at = (Date.now() - Date.parse(startedAt)) / 1000
    if (progress.etaSeconds !== null) estimates.push({ at, seconds: at + progress.etaSeconds })
    await pause(LOOK_MS)
  }
}

/** A projection's own statement over all events. */
function bareStatement(name: string): string {
  const projection = projections.find((each) => each.name === name)
  if (projection === undefined || projection.form === 'fold') throw new Error(`${name} is not a statement`)
  return `INSERT INTO ${FIRST_GENERATION.nameOf(projection.into)} (${projection.columns.join(', ')}) ${projection.select.replaceAll('{range}', 'true')}`
}
