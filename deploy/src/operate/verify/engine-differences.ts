import type { Postgres } from '@gamenet/engines'
import {
  countLoaded,
  eventTableNames,
  readAppliedErasures,
  readCheckpoints,
  readRetractions,
  readStalls,
  readWholeBlocks,
  type Store
} from '@gamenet/projector'
import { loadCheckpoint, topics } from '@gamenet/schemas'
import type { Finding } from '../../stores/damage-report.js'
import { NEWER_WRITES, noneIfDamaged, RESTORE, undefinedIfDamaged } from '../../stores/engine-failures.js'
import type { Engines } from '../../stores/engines.js'
import { missingErasures } from '../../stores/ledger.js'
import { olderWrites, sentenceOf } from '../../stores/older-writes.js'
import { wayFromOlderLog } from '../../stores/whole-log.js'
import type { CheckedPartition, LoadedPartition } from './check-thread.js'
import { type Marking, REBUILT } from './damage-of-tables.js'

/* Compares the tables with the log and with the write side. */

const LOAD_AGAIN =
  'repair the write side first if it is damaged; then load them again: `gamenet rebuild start <projection> ' +
  '--from-log`, for a projection that reads the table'

/**
 * Reads how far the partitions of the log are loaded. Rows are counted before the log is read: an erasure deletes keys
 * before rows, so events without a row at this time are not counted there either.
 */
export async function loadedPartitions(store: Store): Promise<LoadedPartition[]> {
  const topicOf = new Map(topics.map((topic) => [loadCheckpoint(topic.name), topic]))
  const partitions: Omit<LoadedPartition, 'undone'>[] = []
  for (const { name, ...place } of await store.do(readCheckpoints).catch(noneIfDamaged)) {
    const topic = topicOf.get(name)
    if (topic === undefined) continue
    const stored = await store.do(countLoaded, topic.name, place).catch(undefinedIfDamaged)
    const whole = topic.people && (await store.do(readWholeBlocks, topic.name, place).catch(undefinedIfDamaged))
    partitions.push({ topic: topic.name, ...place, stored, whole })
  }
  // Read after the rows were counted: an undo is recorded before it deletes them.
  const retracted = await store.do(readRetractions).catch(undefinedIfDamaged)
  return partitions.map((each) => ({
    ...each,
    stored: retracted && each.stored,
    undone: new Set((retracted ?? []).flatMap(({ importId, topic }) => (topic === each.topic ? [importId] : [])))
  }))
}

/** Verifies that checkpoints are within the log, and that event tables contain all events before them. */
export async function damageOfCheckpoints(
  { store, log }: Pick<Engines, 'store' | 'log'>,
  {
    loaded,
    checked,
    marking
  }: {
    readonly loaded: readonly LoadedPartition[]
    readonly checked: readonly CheckedPartition[]
    /** Undefined if nothing is loaded again by itself: a server's, or the write side is to be repaired first. */
    readonly marking: Marking
  }
): Promise<Finding[]> {
  const damages: Finding[] = []
  const stalled = await readStalls({ store, log })
  for (const stall of stalled) {
    const { topic, epoch, partition, wanted, first, next } = stall
    damages.push({
      part: 'checkpoints',
      what: `${topic} ${epoch}/${partition} is loaded up to ${wanted}; the log has ${first} to ${next}`,
      cost: 'the topic is stalled; events that the log lost cannot be loaded again',
      repair:
        wanted > next
          ? wayFromOlderLog(log, stall)
          : `gamenet gap list, then gamenet gap accept ${topic}; or ${RESTORE}`
    })
  }
  for (const { topic, epoch, partition, next, stored } of loaded) {
    const table = eventTableNames.get(topic)
    const isHere = (each: { topic: string; epoch: number; partition: number }) =>
      each.topic === topic && each.epoch === epoch && each.partition === partition
    const events = checked.find(isHere)?.events ?? 0
    if (
      table === undefined ||
      stalled.some(isHere) ||
      stored === undefined ||
      stored.events + stored.deadLetters >= events
    )
      continue
    const what = `it lacks events of ${topic} ${epoch}/${partition} that the log has`
    await marking?.markServing([[table, what]]).catch(undefinedIfDamaged)
    damages.push({
      part: 'checkpoints',
      what:
        `${table} holds ${stored.events} events of ${topic} ${epoch}/${partition} below ${next}; the log has ` +
        `${events}`,
      cost: 'answers lack these events',
      repair: marking === undefined ? LOAD_AGAIN : REBUILT
    })
  }
  return damages
}

/** Finds a write side that was deleted, or restored from an older copy, unless an operator has accepted it. */
export async function damageOfOlderWrites(
  store: Store | undefined,
  writes: Postgres | undefined,
  erasedAgain: readonly string[]
): Promise<Finding[]> {
  if (store === undefined || writes === undefined) return []
  const older = await olderWrites(writes, store)
  const damages: Finding[] = []
  if (older !== undefined) {
    const cost = 'the service does not start; keys of people and changes since then are lost'
    damages.push({ part: 'writes', what: sentenceOf(older), cost, repair: NEWER_WRITES })
  }
  if (erasedAgain.length > 0) {
    const what =
      `the write side lacks ${erasedAgain.length} erasures that the tables have: it was deleted, or is ` +
      `older than the tables`
    const cost = 'the next start erases these users again, also what they did since they returned'
    damages.push({ part: 'writes', what, cost, repair: NEWER_WRITES })
  }
  return damages
}

/** The erasures that the next start repeats, because only the tables know of them. */
export async function missingErasuresOf(store: Store | undefined, writes: Postgres | undefined): Promise<string[]> {
  if (store === undefined || writes === undefined) return []
  return await missingErasures(writes, await store.do(readAppliedErasures))
}
