import type { ClickHouse } from '@gamenet/engines'
import { titleCount, titleCountHour } from '../src/projections/title-count.js'
import type { Projection, SqlProjection } from '../src/store/projection.js'
import type { Range } from '../src/store/range.js'
import { makeRows } from '../src/store/step.js'
import { firstStore } from './pipeline.js'

/*
 * A day of counts, sampled evenly. The titles of a sample follow one another in the log, in three partitions.
 */

const PARTITIONS = 3
const EPOCH = 1
const DAY = "toDateTime64('2026-03-14 00:00:00', 3, 'UTC')"

export type Day = { readonly titles: number; readonly sampleSeconds: number }

/** Runs the step of a projection in SQL over a range. */
export async function runStatement(
  { projections: tables }: Pick<ClickHouse, 'projections'>,
  projection: Projection,
  range: Range,
  isLate = false
) {
  await firstStore(tables).do(makeRows, projection as SqlProjection, { range, isLate })
}

/** Stores the events of a whole day, and their rows of `title_count`, by hours. */
export async function fillDay(engine: ClickHouse, { titles, sampleSeconds }: Day): Promise<void> {
  const events = (titles * 3600) / sampleSeconds
  for (let first = 0; first < 24 * events; first += events) {
    await engine.projections.execute(`
      INSERT INTO event_title_count__0 (epoch, partition, offset, source, observed_at, recorded_at, title_id, online)
      SELECT ${EPOCH}, n % ${PARTITIONS}, intDiv(n, ${PARTITIONS}), '/test', at, at, hex(toUInt32(n % ${titles})), n % 97
      FROM (
        SELECT number AS n, ${DAY} + toIntervalSecond(${sampleSeconds} * intDiv(number, ${titles})) AS at
        FROM numbers(${first}, ${events}))`)
    await runStatement(engine, titleCount, rangeOf(first, first + events))
  }
}

/** Runs the step of the hour rollup over the last sample of an hour, from 1; returns the rows it read per event. */
export async function rowsPerEvent(engine: ClickHouse, { titles, sampleSeconds }: Day, hour: number): Promise<number> {
  const end = (titles * hour * 3600) / sampleSeconds
  const read = async () => {
    const [row] = await engine.control.rows(
      "SELECT e.value AS value FROM system.events AS e WHERE e.event = 'SelectedRows'"
    )
    return Number(row?.value)
  }
  const before = await read()
  await runStatement(engine, titleCountHour, rangeOf(end - titles, end))
  return ((await read()) - before) / titles
}

/** The events from number `first` on, to `next`. */
function rangeOf(first: number, next: number): Range {
  return Array.from({ length: PARTITIONS }, (_, partition) => ({
    epoch: EPOCH,
    partition,
    first: Math.ceil((first - partition) / PARTITIONS),
    next: Math.ceil((next - partition) / PARTITIONS)
  }))
}
