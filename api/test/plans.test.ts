import type { Lane } from '@gamenet/engines'
import { test } from 'tap'
import { networkPeaks, networkSamples } from '../src/queries/network-count.js'
import { cutAtDays, cutAtHours, uncut } from '../src/queries/series.js'
import { titleActivity, titlePeaks, titleSamples } from '../src/queries/title-count.js'
import type { Parameters } from '../src/read-tables.js'
import { DAY_MS, MINUTE_MS } from './plain-counts.js'
import { openReadModel } from './read-model.js'

const FIRST_MS = Date.UTC(2026, 0, 1)
const MINUTES = 40_000
const TITLES = 20

/** Granules that a statement reads of a table, and those that the table has. */
async function granules(
  tables: Lane,
  sql: string,
  parameters: Parameters,
  table: string
): Promise<{ read: number; of: number }> {
  const lines = (await tables.rows(`EXPLAIN indexes = 1 ${sql}`, parameters)).map((row) => String(row.explain))
  let read = 0
  let of = 0
  for (const [at, line] of lines.entries()) {
    if (!line.includes(`ReadFromMergeTree (`) || !line.includes(`.${table})`)) continue
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

test('a question about one title or metric reads by the primary key, whatever the table holds', async (t) => {
  const { clickhouse } = await openReadModel(t)
  await clickhouse.loader.execute(`
    INSERT INTO title_count (title_id, ts, online, position)
    SELECT leftPad(lower(hex(intDiv(number, ${MINUTES}))), 8, '0'),
      toDateTime64(${FIRST_MS / 1000} + number % ${MINUTES} * 60, 3, 'UTC'), number % 100, number
    FROM numbers(${TITLES * MINUTES})`)
  await clickhouse.loader.execute(`
    INSERT INTO network_count
    SELECT ['lobbies', 'online', 'registered'][1 + intDiv(number, 200000)],
      toDateTime64(${FIRST_MS / 1000} + number % 200000 * 60, 3, 'UTC'), number % 100, number
    FROM numbers(600000)`)
  const tables = clickhouse.readers
  const window = { fromMs: FIRST_MS + DAY_MS + 7 * MINUTE_MS, toMs: FIRST_MS + 20 * DAY_MS + 9 * MINUTE_MS }
  const day = { from: window.fromMs, to: window.fromMs + DAY_MS }
  const titleId = '00000007'

  const samples = await granules(tables, titleSamples.sql, { titleId, ...day }, 'title_count')
  t.ok(samples.of > 90 && samples.read <= 3, `a day of one title: ${JSON.stringify(samples)}`)
  const edges = await granules(tables, titlePeaks.sql, { titleId, width: 3600, ...cutAtHours(window) }, 'title_count')
  t.ok(edges.of > 90 && edges.read <= 4, `the edges of weeks of one title: ${JSON.stringify(edges)}`)
  const whole = await granules(tables, titlePeaks.sql, { titleId, width: 300, ...uncut(window) }, 'title_count')
  t.ok(whole.of > 90 && whole.read <= 6, `weeks of one title by samples: ${JSON.stringify(whole)}`)
  const all = await granules(tables, titleActivity.sql, cutAtDays(window), 'title_count')
  t.ok(all.of > 90 && all.read <= TITLES * 4, `the edges of weeks of all titles: ${JSON.stringify(all)}`)

  const metric = 'online'
  const network = await granules(tables, networkSamples.online.sql, { metric, ...day }, 'network_count')
  t.ok(network.of > 70 && network.read <= 3, `a day of the network: ${JSON.stringify(network)}`)
  const peaks = await granules(
    tables,
    networkPeaks.online.sql,
    { metric, width: 3600, ...cutAtHours(window) },
    'network_count'
  )
  t.ok(peaks.of > 70 && peaks.read <= 4, `the edges of weeks of the network: ${JSON.stringify(peaks)}`)
})
