import { test } from 'tap'
import { fillDay, rowsPerEvent } from './open-hour.js'
import { emptyTables, openTables } from './pipeline.js'

/* The short form is title-count-hour.test.ts. `CAMPAIGN_CASES` = 4 adds 20,000 titles each 10 s: 173 million events. */

const DAYS = [
  { titles: 2000, sampleSeconds: 60 },
  { titles: 2000, sampleSeconds: 10 },
  { titles: 20_000, sampleSeconds: 60 },
  { titles: 20_000, sampleSeconds: 10 }
].slice(0, Number(process.env.CAMPAIGN_CASES ?? 3))

test('the rows that the hour rollup reads per event do not grow with the hour of the day', {
  timeout: 0
}, async (t) => {
  const engine = await openTables()
  for (const day of DAYS) {
    await emptyTables(engine.control)
    await fillDay(engine, day)
    const rows = new Map<number, number>()
    for (const hour of [1, 6, 12, 24]) rows.set(hour, await rowsPerEvent(engine, day, hour))
    t.comment(
      `${day.titles} titles, a sample each ${day.sampleSeconds} s; rows read per event at the end of an hour: ` +
        [...rows].map(([hour, read]) => `hour ${hour}: ${read.toFixed(0)}`).join(', ')
    )
    t.ok((rows.get(24) ?? 0) <= 1.1 * (rows.get(1) ?? 0), `${rows.get(24)} at hour 24, ${rows.get(1)} at hour 1`)
  }
})
