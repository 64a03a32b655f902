import { test } from 'tap'
import { titleCount, titleCountHour } from '../src/projections/title-count.js'
import type { Range } from '../src/store/range.js'
import { fillDay, rowsPerEvent, runStatement } from './open-hour.js'
import { emptyTables, openTables } from './pipeline.js'

const HOURS = `
  SELECT h.title_id AS title_id, h.hour AS hour, h.min AS min, h.max AS max, h.max_at AS max_at, h.sum AS sum,
    h.samples AS samples, h.position AS position`

/** What the rollup is, in one statement over the counts. */
const PLAIN = `
  SELECT c.title_id AS title_id, toStartOfHour(c.ts) AS hour, min(c.online) AS min, max(c.online) AS max,
    argMin(c.ts, (-toInt64(c.online), c.ts)) AS max_at, sum(c.online) AS sum, count() AS samples,
    max(c.position) AS position
  FROM title_count__0 AS c FINAL GROUP BY c.title_id, hour ORDER BY title_id, hour`

test('the hours of titles', async (t) => {
  const engine = await openTables()
  const range = (first: number, next: number, epoch = 2): Range => [{ epoch, partition: 0, first, next }]
  /** Stores events of one title each: offset, time of day, players. */
  const load = async (epoch: number, events: readonly (readonly [number, string, string, number])[]) => {
    const values = events.map(
      ([offset, title, time, online]) =>
        `(${epoch}, 0, ${offset}, '/test', '2026-03-14 ${time}', '2026-03-14 ${time}', '${title}', ${online})`
    )
    await engine.control.execute(
      `INSERT INTO event_title_count__0 (epoch, partition, offset, source, observed_at, recorded_at, title_id, online)
       VALUES ${values.join(', ')}`
    )
  }
  const step = async (of: Range, isLate = false) => {
    for (const projection of [titleCount, titleCountHour]) await runStatement(engine, projection, of, isLate)
  }
  const stored = async () =>
    await engine.control.rows(`${HOURS} FROM title_count_hour__0 AS h FINAL ORDER BY title_id, hour`)

  await t.test('equal the counts after each step, whether it is of two hours or of more', async (t) => {
    await load(1, [[0, 'a', '20:10:00', 500]])
    await load(2, [
      [0, 'a', '20:00:00', 7],
      [1, 'b', '20:00:00', 3],
      [2, 'a', '20:30:00', 9],
      // The same instant again: the later event counts.
      [3, 'a', '20:30:00', 8],
      [4, 'a', '20:59:59.999', 8],
      [5, 'a', '21:00:00', 1],
      [6, 'b', '21:00:00', 0],
      [7, 'a', '20:15:00', 9],
      [8, 'b', '23:00:00', 4],
      [9, 'a', '19:00:00', 5]
    ])
    // Rows that are stored twice, as after a crash.
    await load(2, [[3, 'a', '20:30:00', 8]])
    const steps = [range(0, 1, 1), range(0, 2), range(2, 4), range(4, 7), range(7, 8), range(8, 9), range(9, 10)]
    for (const each of steps) {
      await step(each)
      t.same(await stored(), await engine.control.rows(PLAIN), JSON.stringify(each))
    }
    const byHours = await stored()
    await engine.control.execute('TRUNCATE TABLE title_count_hour__0')
    await step([...range(0, 1, 1), ...range(0, 10)])
    t.same(await stored(), byHours, 'a range of five hours makes the same rows')
    t.equal(byHours.length, 6)
    // A dead letter that is retried lies before events of its hour.
    await load(2, [[20, 'a', '22:10:00', 1]])
    await step(range(20, 21))
    await load(2, [[15, 'a', '22:05:00', 8]])
    await step([{ ...range(15, 16)[0], offsets: [15] } as Range[number]], true)
    t.same(await stored(), await engine.control.rows(PLAIN), 'a late event counts')
    t.equal((await stored()).length, 7)
  })
  await t.test('need no more rows per event at the end of the day than at its beginning', async (t) => {
    await emptyTables(engine.control)
    const day = { titles: 400, sampleSeconds: 60 }
    await fillDay(engine, day)
    const [first, last] = [await rowsPerEvent(engine, day, 1), await rowsPerEvent(engine, day, 24)]
    t.ok(first > 60, `${first} in the first hour`)
    t.ok(last <= 1.1 * first, `${last} in the last hour, ${first} in the first`)
  })
})
