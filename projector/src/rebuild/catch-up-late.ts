import { conditionOf, loadCheckpoint, projectionCheckpoint, type Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import { eventTables } from '../events/event-tables.js'
import {
  lateBatchesConsumedBy,
  lateBatchesPendingFor,
  readLateRange,
  storeConsumed
} from '../project/late-events/late-batches.js'
import type { Projection } from '../project/projection.js'
import { lengthOf } from '../project/range.js'
import { runStep } from '../project/run-step.js'
import type { StepContext } from '../project/step.js'
import type { Tables } from '../store/tables.js'
import type { RebuildRecord } from './rebuild-record.js'
import { reloadedTopic } from './reload.js'

/**
 * Takes the batches of late events that the live tables have taken, and never more: they may lie before what the fill or the
 * catch-up had come to.
 * @param making the tables under the names of the rebuild, what it has taken of late batches among them
 * @returns how many events were taken
 */
export async function catchUpLate(
  live: Tables,
  making: StepContext,
  { unit, record }: { readonly unit: readonly Projection[]; readonly record: RebuildRecord }
): Promise<number> {
  let taken = 0
  const ofLive = new Map<string, readonly string[]>()
  for (const { name } of unit) ofLive.set(name, await lateBatchesConsumedBy(live, projectionCheckpoint(name)))
  const topic = reloadedTopic(record)
  // Behind the question: so it has all that is taken below.
  if (topic !== undefined) await copyLate(live, making, topic, record)
  const ownOf = new Map<string, Set<string>>()
  for (const projection of unit) {
    const taker = projectionCheckpoint(projection.name)
    const own = new Set(await lateBatchesConsumedBy(making.tables, taker))
    ownOf.set(projection.name, own)
    // Live steps go on meanwhile: what the table before this one was not given yet is taken the next time.
    const before = ownOf.get(projection.after ?? '')
    const isNext = (id: string) => !own.has(id) && (before === undefined || before.has(id))
    for (const id of (ofLive.get(projection.name) ?? []).filter(isNext)) {
      making.signal.throwIfAborted()
      const range = await readLateRange(live, id)
      await runStep(making, projection, { range, isLate: true })
      await storeConsumed(making.tables, [{ id, taker }])
      own.add(id)
      taken += lengthOf(range)
    }
  }
  return taken
}

/**
 * Copies all late events into an event table of the rebuild's own, which was loaded when they could perhaps not be read; whether
 * projections have taken them or not: once it serves, they are looked for there.
 */
export async function copyLate(
  live: Tables,
  making: StepContext,
  topic: Topic,
  { tables }: RebuildRecord
): Promise<void> {
  const table = eventTableName(topic)
  const columns = eventTables.find((each) => each.table === table)?.columns ?? []
  const taker = loadCheckpoint(topic.name)
  for (const { id } of await lateBatchesPendingFor(making.tables, taker, [topic.name])) {
    making.signal.throwIfAborted()
    const { sql, parameters } = conditionOf(await readLateRange(live, id))
    const values = columns.map((column) => `e.${column}`).join(', ')
    await live.execute(
      `INSERT INTO ${tables[table]} (${columns.join(', ')}) SELECT ${values} FROM ${table} AS e FINAL WHERE ${sql}`,
      parameters
    )
    await storeConsumed(making.tables, [{ id, taker }])
  }
}
