import { errorMessage, generationName, loadCheckpoint, type PartitionExtent, pause, type Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import { eventTableOf } from '../events/event-tables.js'
import { readUndone } from '../generations/generations.js'
import type { Loader } from '../load/loader.js'
import { Checkpoints, type Progress, storeCheckpoints } from '../store/checkpoint.js'
import { copyEvents, countLoaded, deleteImports, readMissingOffsets } from '../store/event-table.js'
import type { Store } from '../store/operation.js'
import { type Live, liveOf, type RebuildContext, reloadedTopic, stepContextOf, waitingNames } from './context.js'
import { RebuildRefused } from './contract.js'
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
      if (!(await shouldContinue((wait) => loader.whilePaused(wait)))) return false
      await pause(LOOK_MS, signal)
      const now = left(await Checkpoints.read(store))
      onStep({ projection: name, events: before - now })
      if (now === 0) {
        await deleteRetracted(live, store, topic)
        return true
      }
      if (now < before) movedAt = performance.now()
      before = now
      const { reading, storing } = loader.trouble()
      if (storing?.isFinal === true) throw new RebuildRefused(storing.reason)
      const reason = storing?.reason ?? reading
      const restedMs = performance.now() - movedAt
      if (reason !== null && restedMs > STANDSTILL_MS)
        throw new Error(
          `${topic.name} cannot be loaded from the log: ${reason} (gamenet verify names damage and its repair)`
        )
      if (restedMs > SILENCE_MS)
        throw new Error(`${topic.name} cannot be loaded from the log: nothing was read for ${SILENCE_MS / 1000} s`)
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
  const kept = keptCheckpoint(record, topic)
  const checkpoints = await Checkpoints.read(store)
  for (const { epoch, partition, next } of target) {
    const extent = extents.find((each) => each.epoch === epoch && each.partition === partition)
    const first = Math.min(next, extent === undefined ? next : extent.first)
    if (first <= checkpoints.next(kept, epoch, partition)) continue
    const place = { epoch, partition, next: first }
    await context.steps.run(() =>
      store
        .with({ names: waitingNames(record), signal: context.signal })
        .do(copyEvents, table, live.names.get(table.table) ?? table.table, [{ ...place, first: 0 }])
    )
    await store.do(storeCheckpoints, [
      { name: kept, ...place },
      { name: loadCheckpoint(topic.name), ...place }
    ])
  }
}

/**
 * Name of the checkpoint up to which events were copied. The loader may already run, so its checkpoint does not show
 * whether events before the log's beginning are missing.
 */
function keptCheckpoint(record: RebuildRecord, { name }: Topic): string {
  const generation = record.waiting.find(({ owner }) => owner === loadCheckpoint(name))?.generation ?? record.id
  return generationName(`kept:${name}`, generation)
}

/**
 * Throws a {@link RebuildRefused} if an event table that was loaded from the log has fewer events of a partition than
 * the table that it replaces: then the log is not the one that filled that. Erasures and undos delete from both.
 */
export async function requireAllEvents(context: RebuildContext, record: RebuildRecord): Promise<void> {
  const topic = reloadedTopic(record)
  if (topic === undefined) return
  const live = await liveOf(context)
  const { store } = stepContextOf(context, record, live)
  for (const place of (await Checkpoints.read(store)).of(loadCheckpoint(topic.name))) {
    const before = await live.store.do(countLoaded, topic.name, place)
    const loaded = await store.do(countLoaded, topic.name, place)
    if (loaded.events >= before.events) continue
    throw new RebuildRefused(
      `The log and rebuild ${record.id} have ${loaded.events} events of ${topic.name} ${place.epoch}/` +
        `${place.partition} below ${place.next}, the readable parts of the table ${before.events}: the log is not ` +
        `the one that filled it. Restore the newest backup.`
    )
  }
}

/** Ranges that a sentence names. */
const RANGES_NAMED = 10

/** Records the positions that neither the log nor the parts of the event table that could be read have. */
export async function recordGone(context: RebuildContext, record: RebuildRecord): Promise<void> {
  const topic = reloadedTopic(record)
  if (topic === undefined) return
  const live = await liveOf(context)
  const { store } = stepContextOf(context, record, live)
  const kept = (await Checkpoints.read(store)).of(keptCheckpoint(record, topic))
  // With the dead letters of the installation, whose messages the log may no longer have.
  const table = eventTableName(topic)
  const names = new Map([...live.names, [table, waitingNames(record).get(table) ?? table] as const])
  for (const place of kept) {
    const ranges = await context.store.with({ names }).do(readMissingOffsets, topic.name, place, RANGES_NAMED + 1)
    if (ranges.length === 0) continue
    const partition = `${topic.name} ${place.epoch}/${place.partition}`
    const named = ranges.slice(0, RANGES_NAMED).map(({ first, next }) => `${first} to ${next - 1}`)
    const more = ranges.length > RANGES_NAMED ? ' and others' : ''
    await context.damaged.lose([
      [
        partition,
        `Neither the log nor a readable part of ${table} has the positions ${named.join(', ')}${more} of ` +
          `${partition}; erased and undone events are among them. A backup may have them.`
      ]
    ])
  }
}
