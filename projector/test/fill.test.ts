import { projectionCheckpoint } from '@gamenet/schemas'
import { test } from 'tap'
import { projections, type Tables } from '../src/index.js'
import { type Filling, fill, STEP_SIZES } from '../src/rebuild/fill.js'
import type { RebuildRecord } from '../src/rebuild/rebuild-record.js'
import { Checkpoints } from '../src/store/checkpoint.js'
import { makeRows } from '../src/store/step.js'
import { foldInline } from '../testing/inline.js'
import { latch } from './latch.js'
import { firstStore, openTables } from './pipeline.js'

const BOARDS = 23
const EVENTS = BOARDS * 20
const SLICES = 6
const TABLES = [
  ...['leaderboard_history', 'timed_entry', 'leaderboard_entry', 'leaderboard_change', 'leaderboard_feed'],
  ...['record_history', 'player_entry']
]
const titleOf = (board: number) => (board % 2 === 0 ? '4d530064' : '55530036')
const keys = Array.from({ length: BOARDS }, (_, board) => [titleOf(board), board] as const).sort(
  ([a, m], [b, n]) => a.localeCompare(b) || m - n
)
/** Cuts into slices of four boards. */
const cutsInto = (slices: number) => keys.filter((_, n) => n > 0 && n % 4 === 0).slice(0, slices - 1)
const unit = projections.filter(({ name }) =>
  ['leaderboard-history', 'timed-entry', 'leaderboard-entry', 'player-entry'].includes(name)
)

/** Boards of five entries, each with four states. */
const EVENTS_SQL = `
  INSERT INTO event_leaderboard_entry__0 (epoch, partition, offset, source, import_id, observed_at, title_id, leaderboard_id,
    player, player_key, occurrence, change, rating, time_ms, stated_rank, ord, step, details)
  SELECT 0, 0, n.number, '/test', '', fromUnixTimestamp64Milli(toInt64(1700000000000 + n.number), 'UTC'),
    if(n.number % {boards: UInt64} % 2 = 0, '4d530064', '55530036'), n.number % {boards: UInt64},
    concat('p', toString(intDiv(n.number, {boards: UInt64}) % 5)) AS name, name, 1,
    if(n.number < {boards: UInt64} * 5, 'new', 'updated'), toString(sipHash64(n.number) % 9), sipHash64(n.number) % 9, NULL,
    sipHash64(n.number) % 999, 1, ''
  FROM numbers({events: UInt64}) AS n`

test('a fill by slices resumes after the last completed one, and computes the same rows as a whole', async (t) => {
  const engine = await openTables()
  await engine.control.execute(EVENTS_SQL, { boards: BOARDS, events: EVENTS })
  const rowsOf = async () => {
    const hashes: string[] = []
    for (const table of TABLES) {
      const [row] = await engine.control.rows(
        `SELECT count() AS rows, sum(cityHash64(tuple(r.*))) AS hash FROM ${table} AS r FINAL
         WHERE ${table === 'timed_entry' ? 'r.is_live' : 'true'}`
      )
      hashes.push(`${table} ${row?.rows} ${row?.hash}`)
    }
    return hashes
  }
  const empty = async () => {
    for (const table of [...TABLES, 'rank_reached', 'checkpoint'])
      await engine.control.execute(`TRUNCATE TABLE ${table === 'checkpoint' ? table : `${table}__0`}`)
  }
  const filling = (slices: number, more: Partial<Filling> = {}): Filling => ({
    step: { store: firstStore(engine.rebuild), folding: foldInline(), signal: new AbortController().signal },
    unit,
    record: {
      id: 1,
      target: { 'leaderboard-entry': [{ epoch: 0, partition: 0, next: EVENTS }] },
      events: Object.fromEntries(unit.map(({ name }) => [name, EVENTS])),
      cuts: {
        'leaderboard-entry': cutsInto(slices),
        // Otherwise by ranges of the log.
        ...(slices === 1 ? {} : { 'timed-entry': cutsInto(slices), 'player-entry': cutsInto(slices) })
      },
      costs: {}
    } as unknown as RebuildRecord,
    sizes: () => STEP_SIZES,
    shouldContinue: async () => true,
    onStep: () => undefined,
    ...more
  })
  const noted = async () =>
    (await Checkpoints.read(firstStore(engine.control))).next('slices:leaderboard-entry__1', 0, 0)

  const { step: plain } = filling(1)
  const timesBegun = latch()
  const over = (different: Partial<Tables>): Filling['step'] => ({
    ...plain,
    store: firstStore({
      rows: (sql, parameters) => engine.rebuild.rows(sql, parameters),
      json: (sql, parameters) => engine.rebuild.json(sql, parameters),
      execute: (sql, parameters) => engine.rebuild.execute(sql, parameters),
      insert: (...rows) => engine.rebuild.insert(...rows),
      ...different
    })
  })
  const playersAfterTimes = over({
    execute: async (sql, parameters) => {
      if (sql.startsWith('INSERT INTO timed_entry')) timesBegun.open()
      if (sql.startsWith('INSERT INTO player_entry')) await timesBegun.opened
      await engine.rebuild.execute(sql, parameters)
    }
  })
  t.equal(
    await fill(filling(1, { step: playersAfterTimes })),
    true,
    'projections that do not read each other are filled at once'
  )
  const whole = await rowsOf()
  await empty()

  const begun: unknown[] = []
  const failing = over({
    rows: async (sql, parameters = {}) => {
      const n =
        cutsInto(SLICES).findIndex(([title, board]) => title === parameters.from_0 && board === parameters.from_1) + 1
      if (n > 0) begun.push(n)
      if (n === 3) throw new Error('the tables are away')
      return await engine.rebuild.rows(sql, parameters)
    }
  })
  await t.rejects(fill(filling(SLICES, { step: failing })), /tables are away/)
  t.equal(await noted(), 3, 'those before the one that failed')
  t.notOk(begun.includes(5), 'and no third one was begun besides two')

  let steps = 0
  const countStep = () => {
    steps += 1
  }
  const isDone = await fill(filling(SLICES, { shouldContinue: async () => steps === 0, onStep: countStep }))
  t.equal(isDone, false, 'asked to stop')
  t.equal(await noted(), 3 + steps, 'what was under way is noted')

  t.equal(await fill(filling(SLICES)), true)
  t.same(await rowsOf(), whole)
  const reached = await Checkpoints.read(firstStore(engine.control))
  t.equal(reached.next(projectionCheckpoint('leaderboard-entry'), 0, 0), EVENTS)
})

test('a slice of keys reads its part of a table alone', async (t) => {
  const engine = await openTables()
  await engine.control.execute(`
    INSERT INTO leaderboard_entry__0 (title_id, leaderboard_id, player, occurrence)
    SELECT if(n.number % 2 = 0, '4d530064', '55530036'), n.number % 100, toString(n.number), 1 FROM numbers(100000) AS n`)
  const read: unknown[] = []
  const explaining: Tables = {
    ...engine.rebuild,
    execute: async (sql, parameters) => {
      const [row] = await engine.rebuild.rows(sql.replace(/^INSERT INTO.*?\)/, 'EXPLAIN ESTIMATE'), parameters)
      read.push(row?.rows)
    }
  }
  const [playerEntry] = unit.filter((each) => each.name === 'player-entry')
  if (playerEntry === undefined || playerEntry.form === 'fold') throw new Error('player-entry is not a statement')
  const slices = [{ to: ['4d530064', 10] }, { from: ['4d530064', 80], to: ['55530036', 9] }, { from: ['55530036', 91] }]
  for (const slice of slices)
    await firstStore(explaining).do(makeRows, playerEntry, { range: [], isLate: false, slice })
  for (const rows of read) t.ok(Number(rows) >= 5000 && Number(rows) < 20_000, `${rows} of 100,000 rows`)
  t.equal(read.length, slices.length)
})

const COUNTS = 500
const COUNTS_SQL = `
  INSERT INTO event_title_count__0 (epoch, partition, offset, source, import_id, observed_at, title_id, online, sessions, lobby_players)
  SELECT 0, 0, n.number, '/test', '', fromUnixTimestamp64Milli(toInt64(1700000000000 + n.number * 60000), 'UTC'),
    if(n.number % 3 = 0, '4d530064', '55530036'), sipHash64(n.number) % 150, NULL, NULL
  FROM numbers({events: UInt64}) AS n`

test('a table computed from another one is filled in few steps, in smaller ones if memory does not suffice, to the same rows', async (t) => {
  const engine = await openTables()
  await engine.control.execute(COUNTS_SQL, { events: COUNTS })
  const counts = projections.filter(({ name }) => name === 'title-count' || name === 'title-count-hour')
  const rowsOf = async () =>
    await engine.control.json(
      `SELECT h.title_id, h.hour, h.min, h.max, h.sum, h.samples FROM title_count_hour AS h FINAL ORDER BY ALL`
    )
  const sizes = { ...STEP_SIZES, least: 20, most: 320 }
  /** Returns the number of events of each step of the hours; a step with more than `memory` fails. */
  const stepsOf = async (memory: number) => {
    for (const table of ['title_count', 'title_count_hour', 'checkpoint'])
      await engine.control.execute(`TRUNCATE TABLE ${table === 'checkpoint' ? table : `${table}__0`}`)
    const steps: number[] = []
    const tables = {
      rows: engine.rebuild.rows.bind(engine.rebuild),
      json: engine.rebuild.json.bind(engine.rebuild),
      insert: engine.rebuild.insert.bind(engine.rebuild),
      execute: async (sql: string, parameters: Record<string, unknown> = {}) => {
        if (Number(parameters.next_0) - Number(parameters.first_0) > memory) throw new Error('too much for the memory')
        await engine.rebuild.execute(sql, parameters)
      }
    }
    const isDone = await fill({
      step: { store: firstStore(tables), folding: foldInline(), signal: new AbortController().signal },
      unit: counts,
      record: {
        target: { 'title-count': [{ epoch: 0, partition: 0, next: COUNTS }] },
        events: Object.fromEntries(counts.map(({ name }) => [name, COUNTS])),
        cuts: {},
        costs: {}
      } as unknown as RebuildRecord,
      sizes: () => sizes,
      shouldContinue: async () => true,
      onStep: ({ projection, events }) => {
        if (projection === 'title-count-hour') steps.push(events)
      }
    })
    t.equal(isDone, true)
    return steps
  }
  t.same(await stepsOf(Infinity), [320, 180])
  const whole = await rowsOf()
  for (const [memory, widest] of [
    [319, 80],
    [80, 80],
    [79, 20],
    [20, 20]
  ] as const) {
    const steps = await stepsOf(memory)
    t.same(
      steps,
      [...Array(Math.floor(COUNTS / widest)).fill(widest), COUNTS % widest].filter((events) => events > 0)
    )
    t.same(await rowsOf(), whole)
  }
  await t.rejects(stepsOf(sizes.least - 1), /too much for the memory/)
})
