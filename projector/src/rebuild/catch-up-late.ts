import { loadCheckpoint, projectionCheckpoint, type Topic } from '@gamenet/schemas'
import { eventTableOf } from '../events/event-tables.js'
import { readLateRange } from '../project/late-events/late-batches.js'
import type { Projection } from '../project/projection.js'
import { lengthOf } from '../project/range.js'
import { runStep } from '../project/run-step.js'
import type { StepContext } from '../project/step.js'
import { copyEvents } from '../store/event-table.js'
import { readConsumed, readPending, storeConsumed } from '../store/late-batch.js'
import { type Live, reloadedTopic } from './context.js'
import type { RebuildRecord } from './rebuild-record.js'

/**
 * Takes the batches of late events that the live tables have taken, and never more: they may lie before what the fill or the
 * catch-up had come to.
 * @param making the tables under the names of the rebuild, what it has taken of late batches among them
 * @returns how many events were taken
 */
export async function catchUpLate(
  live: Live,
  making: StepContext,
  { unit, record }: { readonly unit: readonly Projection[]; readonly record: RebuildRecord }
): Promise<number> {
  let taken = 0
  const ofLive = new Map<string, readonly string[]>()
  for (const { name } of unit) ofLive.set(name, await live.store.do(readConsumed, projectionCheckpoint(name)))
  const topic = reloadedTopic(record)
  // Behind the question: so it has all that is taken below.
  if (topic !== undefined) await copyLate(live, making, topic)
  const ownOf = new Map<string, Set<string>>()
  for (const projection of unit) {
    const taker = projectionCheckpoint(projection.name)
    const own = new Set(await making.store.do(readConsumed, taker))
    ownOf.set(projection.name, own)
    // Live steps go on meanwhile: what the table before this one was not given yet is taken the next time.
    const before = ownOf.get(projection.after ?? '')
    const isNext = (id: string) => !own.has(id) && (before === undefined || before.has(id))
    for (const id of (ofLive.get(projection.name) ?? []).filter(isNext)) {
      making.signal.throwIfAborted()
      const range = await readLateRange(live.store, id)
      await runStep(making, projection, { range, isLate: true })
      await making.store.do(storeConsumed, [{ id, taker }])
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
export async function copyLate(live: Live, making: StepContext, topic: Topic): Promise<void> {
  const table = eventTableOf(topic)
  const from = live.names.get(table.table) ?? table.table
  const taker = loadCheckpoint(topic.name)
  for (const { id } of await making.store.do(readPending, taker, [topic.name])) {
    making.signal.throwIfAborted()
    await making.store.do(copyEvents, table, from, await readLateRange(live.store, id))
    await making.store.do(storeConsumed, [{ id, taker }])
  }
}
