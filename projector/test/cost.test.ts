import { runs } from '@gamenet/engines/testing'
import { type Parameters, projectionCheckpoint } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { projections, storeOver } from '../src/index.js'
import { liveOf } from '../src/rebuild/context.js'
import { costOf, measureCosts } from '../src/rebuild/cost.js'
import { STEP_SIZES } from '../src/rebuild/fill.js'
import { Checkpoints } from '../src/store/checkpoint.js'
import { foldInline } from '../testing/inline.js'
import { openTables } from './pipeline.js'

const EVENTS = 60_000
const SLICE_EVENTS = 5000
/** The first board has a share of all events; the others have equal parts of the rest. */
const EVENTS_SQL = `
  INSERT INTO event_leaderboard_entry__0 (epoch, partition, offset, source, import_id, observed_at, title_id, leaderboard_id,
    player, player_key, occurrence, change, rating, time_ms, stated_rank, ord, step, details)
  SELECT 0, 0, n.number, '/test', '', fromUnixTimestamp64Milli(toInt64(1700000000000 + n.number), 'UTC'), '4d530064',
    if(n.number % 100 < {share: UInt64}, 0, n.number % {boards: UInt64}), 'ann', 'ann', 1, 'updated', '1', 1, NULL, 1, 1, ''
  FROM numbers(${EVENTS}) AS n`

test('the cost of an event in long steps is estimated from two sizes of samples, for any cost of steps and events', async (t) => {
  const cost = fc.double({ min: 1e-7, max: 1e-3, noNaN: true })
  await fc.assert(
    fc.asyncProperty(
      cost,
      fc.double({ min: 0, max: 10, noNaN: true }),
      fc.array(fc.double({ min: 0, max: 5, noNaN: true }), { maxLength: 2 }),
      fc.integer({ min: 1, max: 8_000_000 }),
      async (event, step, colder, stepEvents) => {
        const seconds = (events: number) => step + event * events
        const few = 20_000
        const samples = [
          // Some are slower, such as the first one.
          ...colder.map((more) => ({ events: few, seconds: seconds(few) + more })),
          ...[few, 200_000].map((events) => ({ events, seconds: seconds(events) }))
        ]
        const estimated = costOf(samples, stepEvents) * stepEvents
        const right = seconds(stepEvents)
        if (Math.abs(estimated - right) > 1e-6 * right)
          t.fail(`${estimated} s estimated for a step that takes ${right} s`)
      }
    ),
    { seed: 1 }
  )
  t.equal(costOf([{ events: 10, seconds: 1 }], 5), 0.1, 'of one size')
  t.equal(costOf([{ events: 10, seconds: 2 }, ...Array(2).fill({ events: 10, seconds: 1 })], 8e6), 0.1)
  const slower = [
    { events: 10, seconds: 2 },
    { events: 100, seconds: 1 }
  ]
  t.equal(costOf(slower, 100), 0.02, 'which costs its keys alone, as far as one can see')
})

test('slices of keys and samples of them have about as many events as they shall have, unless one board has more', async (t) => {
  const engine = await openTables()
  const unit = projections.filter(({ name }) => name === 'timed-entry')
  const checkpoints = new Checkpoints()
  checkpoints.advance({ name: projectionCheckpoint('timed-entry'), epoch: 0, partition: 0, next: EVENTS })
  const boards = fc.record({ boards: fc.integer({ min: 1, max: 40 }), share: fc.integer({ min: 0, max: 100 }) })
  await fc.assert(
    fc.asyncProperty(boards, async (those) => {
      await engine.control.execute('TRUNCATE TABLE event_leaderboard_entry__0')
      await engine.control.execute(EVENTS_SQL, those)
      const sampled: Parameters[] = []
      const tables: typeof engine.rebuild = {
        ...engine.rebuild,
        execute: async (sql, parameters = {}) => {
          if (sql.startsWith('INSERT')) sampled.push(parameters)
          await engine.rebuild.execute(sql, parameters)
        }
      }
      const live = await liveOf({ store: storeOver(tables), projections })
      const making = { store: live.store, folding: foldInline(), signal: new AbortController().signal }
      const { costs, cuts } = await measureCosts(
        making,
        unit,
        { live, checkpoints },
        { sizes: { ...STEP_SIZES, sliceOfStatement: SLICE_EVENTS }, process: 'this' }
      )
      const cost = costs['timed-entry'] ?? 0
      if (!(cost > 0 && Number.isFinite(cost))) t.fail(`${cost} s an event`)
      if (sampled.length === 0) t.fail('nothing was sampled')
      const firsts = [0, ...(cuts['timed-entry'] ?? []).map(([, board]) => board), 40]
      const slices: Parameters[] = firsts.slice(1).map((next, n) => ({ from_1: firsts[n], to_1: next }))
      for (const slice of [...sampled, ...slices]) {
        const [row] = await engine.control.rows(
          `SELECT sum(b.events) AS events, max(b.events) AS most
           FROM (
             SELECT count() AS events FROM event_leaderboard_entry AS e
             WHERE e.leaderboard_id >= {from_1: UInt32} AND e.leaderboard_id < {to_1: UInt32} GROUP BY e.leaderboard_id) AS b`,
          { from_1: 0, to_1: 40, ...slice }
        )
        const [events, most] = [Number(row?.events), Number(row?.most)]
        if (events === 0) t.fail(`the slice ${JSON.stringify(slice)} is empty`)
        if (slices.includes(slice) && events - most > 2 * SLICE_EVENTS)
          t.fail(`the slice ${JSON.stringify(slice)} has ${events} events`)
      }
    }),
    runs(5)
  )
  t.pass()
})
