import { errorMessage, generationName, loadCheckpoint, type PartitionExtent, pause, type Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import { eventTableOf } from '../events/event-tables.js'
import { readUndone } from '../generations/generations.js'
import type { Loader } from '../load/loader.js'
import { Checkpoints, type Progress, storeCheckpoints } from '../store/checkpoint.js'
import { copyEventsBelow, deleteImports } from '../store/event-table.js'
import type { Store } from '../store/operation.js'
import { type Live, liveOf, type RebuildContext, stepContextOf, waitingNames } from './context.js'
import type { Filling } from './fill.js'
import type { RebuildRecord } from './rebuild-record.js'

const LOOK_MS = 50
/** After this time without a step, a reason why reading has stopped is a failure. */
const STANDSTILL_MS = 30_000
/**
 * After this time without a step it fails without a reason: the reader retries forever and does not report an
 * unavailable log.
 */
const SILENCE_MS = 120_000

/**
 * Loads a topic from the log into the rebuild's event table with a separate loader, to the live loader's position or a
 * little further. Events that the log no longer has are copied from the live table.
 * @returns false if `shouldContinue` paused it
 */
export async function reload(
  context: RebuildContext,
  record: RebuildRecord,
  topic: Topic,
  target: readonly Progress[],
  { shouldContinue, onStep }: Pick<Filling, 'shouldContinue' | 'onStep'>
): Promise<boolean> {
  const { signal } = context
  const live = await liveOf(context)
  const { store } = stepContextOf(context, record, live)
  const name = loadCheckpoint(topic.name)
  const left = (checkpoints: Checkpoints) =>
    target.reduce((sum, { epoch, partition, next }) => {
      return sum + Math.max(0, next - checkpoints.next(name, epoch, partition))
    }, 0)
  let before = left(await Checkpoints.read(store))
  if (before === 0) return true
  const loader = context.loaderOf(store, topic, `rebuild-${record.id}`, context.steps)
  loader.start()
  try {
    await copyExpiredEvents(context, record, topic, { live, target, extents: await extentsOf(loader, topic, signal) })
    let movedAt = performance.now()
    for (;;) {
      if (!(await shouldContinue())) return false
      await pause(LOOK_MS, signal)
      const now = left(await Checkpoints.read(store))
      onStep({ projection: name, done: (record.events[name] ?? 0) - now, events: before - now })
      if (now === 0) {
        await deleteRetracted(live, store, topic)
        return true
      }
      if (now < before) movedAt = performance.now()
      before = now
      const { reading, storing } = loader.trouble()
      const reason = storing?.reason ?? reading
      const restedMs = performance.now() - movedAt
      if (reason !== null && restedMs > STANDSTILL_MS) {
        throw new Error(
          `${topic.name} cannot be loaded from the log: ${reason} (gamenet verify names damage and its repair)`
        )
      }
      if (restedMs > SILENCE_MS) {
        throw new Error(`${topic.name} cannot be loaded from the log: nothing was read for ${SILENCE_MS / 1000} s`)
      }
    }
  } finally {
    await loader.stop()
  }
}

/** Deletes the events of undone imports from the event table of a rebuild. */
export async function deleteRetracted(live: Live, store: Store, topic: Topic): Promise<void> {
  const retracted = await readUndone(store, live.pointers, topic.name)
  if (retracted.length > 0) await store.do(deleteImports, eventTableName(topic), retracted)
}

async function extentsOf(loader: Loader, topic: Topic, signal: AbortSignal): Promise<readonly PartitionExtent[]> {
  const begun = performance.now()
  for (;;) {
    try {
      return await loader.extents(topic.name)
    } catch (error) {
      if (signal.aborted) throw error
      if (performance.now() - begun > STANDSTILL_MS) {
        const reason = `${topic.name} cannot be loaded from the log: ${errorMessage(error)}`
        throw new Error(`${reason}. Repeat it when the log answers.`, { cause: error })
      }
      await pause(LOOK_MS, signal)
    }
  }
}

/**
 * Copies events that only the event table still has: retention deletes the oldest of the log, or all of a former epoch.
 */
async function copyExpiredEvents(
  context: RebuildContext,
  record: RebuildRecord,
  topic: Topic,
  {
    live,
    target,
    extents
  }: { readonly live: Live; readonly target: readonly Progress[]; readonly extents: readonly PartitionExtent[] }
): Promise<void> {
  const { store } = stepContextOf(context, record, live)
  const table = eventTableOf(topic)
  // The loader may already run, so its checkpoint does not show whether events before the log's beginning are missing.
  const generation = record.waiting.find(({ owner }) => owner === loadCheckpoint(topic.name))?.generation ?? record.id
  const kept = generationName(`kept:${topic.name}`, generation)
  const checkpoints = await Checkpoints.read(store)
  for (const { epoch, partition, next } of target) {
    const extent = extents.find((each) => each.epoch === epoch && each.partition === partition)
    const first = Math.min(next, extent === undefined ? next : extent.first)
    if (first <= checkpoints.next(kept, epoch, partition)) continue
    const place = { epoch, partition, next: first }
    await context.steps.run(() =>
      store
        .with({ names: waitingNames(record), signal: context.signal })
        .do(copyEventsBelow, table, live.names.get(table.table) ?? table.table, place)
    )
    await store.do(storeCheckpoints, [
      { name: kept, ...place },
      { name: loadCheckpoint(topic.name), ...place }
    ])
  }
}
