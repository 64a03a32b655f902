import { projectionCheckpoint } from '@gamenet/schemas'
import { eventTables } from '../event-tables.js'
import { readLateRange, storeTaken, takenBy } from '../late-batches.js'
import { type Making, makeRows } from '../make-rows.js'
import type { Projection } from '../projection.js'
import { conditionOf, lengthOf, type Range } from '../range.js'
import type { Tables } from '../tables.js'
import type { RebuildRecord } from './rebuild-record.js'

/**
 * Takes the batches of late events that the live tables have taken, and never more: they may lie before what the fill or the
 * catch-up had come to.
 * @param making the tables under the names of the rebuild, what it has taken of late batches among them
 * @returns how many events were taken
 */
export async function catchUpLate(
  live: Tables,
  making: Making,
  { unit, record }: { readonly unit: readonly Projection[]; readonly record: RebuildRecord }
): Promise<number> {
  let taken = 0
  const ownOf = new Map<string, Set<string>>()
  for (const projection of unit) {
    const taker = projectionCheckpoint(projection.name)
    const own = new Set(await takenBy(making.tables, taker))
    ownOf.set(projection.name, own)
    // Live steps go on meanwhile: what the table before this one was not given yet is taken the next time.
    const before = ownOf.get(projection.after ?? '')
    const isNext = (id: string) => !own.has(id) && (before === undefined || before.has(id))
    for (const id of (await takenBy(live, taker)).filter(isNext)) {
      making.signal.throwIfAborted()
      const range = await readLateRange(live, id)
      await copyEvents(live, projection, record, range)
      await makeRows(making, projection, { range, isLate: true })
      await storeTaken(making.tables, [{ id, taker }])
      own.add(id)
      taken += lengthOf(range)
    }
  }
  return taken
}

/** An event table of the rebuild's own was loaded when the events could perhaps not be read. */
async function copyEvents(live: Tables, { from }: Projection, { tables }: RebuildRecord, range: Range): Promise<void> {
  const source = eventTables.find(({ topic }) => topic.name === from.name)
  const copy = tables[source?.table ?? '']
  if (source === undefined || copy === undefined) return
  const { sql, parameters } = conditionOf(range)
  const columns = source.columns.map((column) => `e.${column}`).join(', ')
  await live.execute(
    `INSERT INTO ${copy} (${source.columns.join(', ')}) SELECT ${columns} FROM ${source.table} AS e FINAL WHERE ${sql}`,
    parameters
  )
}
