import { loadCheckpoint, projectionCheckpoint, type Topic } from '@gamenet/schemas'
import { readLateRange } from '../dead-letters/late-batches.js'
import { eventTableOf } from '../events/event-tables.js'
import type { StepContext } from '../folding/step.js'
import { runStep } from '../project/run-step.js'
import { copyEvents } from '../store/event-table.js'
import { readConsumed, readPending, storeConsumed } from '../store/late-batch.js'
import type { Projection } from '../store/projection.js'
import { lengthOf } from '../store/range.js'
import { type Live, reloadedTopic } from './context.js'
import type { RebuildRecord } from './rebuild-record.js'

/**
 * Consumes the late batches that the live tables have consumed, never more: their events may lie before the position of
 * the fill.
 * @param step the tables and checkpoints of the rebuild
 * @returns the number of events
 */
export async function catchUpLate(
  live: Live,
  step: StepContext,
  { unit, record }: { readonly unit: readonly Projection[]; readonly record: RebuildRecord }
): Promise<number> {
  let taken = 0
  const ofLive = new Map<string, readonly string[]>()
  for (const { name } of unit) ofLive.set(name, await live.store.do(readConsumed, projectionCheckpoint(name)))
  const topic = reloadedTopic(record)
  // After the read of consumed batches, so that the event table has all of them.
  if (topic !== undefined) await copyLate(live, step, topic)
  const ownOf = new Map<string, Set<string>>()
  for (const projection of unit) {
    const consumer = projectionCheckpoint(projection.name)
    const own = new Set(await step.store.do(readConsumed, consumer))
    ownOf.set(projection.name, own)
    // Live steps continue meanwhile: a batch that the preceding projection lacks is consumed by the next call.
    const before = ownOf.get(projection.after ?? '')
    const isNext = (id: string) => !own.has(id) && (before === undefined || before.has(id))
    for (const id of (ofLive.get(projection.name) ?? []).filter(isNext)) {
      step.signal.throwIfAborted()
      const range = await readLateRange(live.store, id)
      await runStep(step, projection, { range, isLate: true })
      await step.store.do(storeConsumed, [{ id, consumer }])
      own.add(id)
      taken += lengthOf(range)
    }
  }
  return taken
}

/**
 * Copies all late events into the rebuild's event table, consumed or not: its loader may not be able to read them, and
 * projections read them there after the swap.
 */
export async function copyLate(live: Live, step: StepContext, topic: Topic): Promise<void> {
  const table = eventTableOf(topic)
  const from = live.names.get(table.table) ?? table.table
  const consumer = loadCheckpoint(topic.name)
  for (const { id } of await step.store.do(readPending, consumer, [topic.name])) {
    step.signal.throwIfAborted()
    await step.store.do(copyEvents, table, from, await readLateRange(live.store, id))
    await step.store.do(storeConsumed, [{ id, consumer }])
  }
}
