import { publishAgain } from '@gamenet/api'
import type { Postgres } from '@gamenet/engines'
import {
  countLoaded,
  eventTableNames,
  readAppliedErasures,
  readCheckpoints,
  readMissingEvents,
  readOffsetsOf,
  readRetractions,
  readStalls,
  readWholeBlocks,
  type Store
} from '@gamenet/projector'
import { loadCheckpoint, topics } from '@gamenet/schemas'
import { erasedPeople, missingErasures } from '../erasure/ledger.js'
import { NEWER_LOG, NEWER_WRITES, noneIfDamaged, RESTORE, undefinedIfDamaged } from '../wiring/engine-failures.js'
import type { Engines } from '../wiring/engines.js'
import { wayFromOlderLog } from '../wiring/whole-log.js'
import { waitUntilCaughtUp } from './caught-up.js'
import type { CheckedLog, CheckedPartition, LoadedPartition } from './check-thread.js'
import type { Damage } from './damage.js'
import { findLostEvents } from './lost-events.js'
import { findLostWrites } from './lost-writes.js'

/* Compares the tables with the log and with the write side. */

const LOAD_AGAIN =
  'load them again: `gamenet rebuild start <projection> --from-log`, for a projection that reads the table'

/**
 * Reads how far the partitions of the log are loaded. Rows are counted before the log is read: an erasure deletes keys before rows, so
 * events without a row at this time are not counted there either.
 */
export async function loadedPartitions(store: Store): Promise<LoadedPartition[]> {
  const topicOf = new Map(topics.map((topic) => [loadCheckpoint(topic.name), topic]))
  const partitions: LoadedPartition[] = []
  for (const { name, ...place } of await store.do(readCheckpoints).catch(noneIfDamaged)) {
    const topic = topicOf.get(name)
    if (topic === undefined) continue
    const stored = await store.do(countLoaded, topic.name, place).catch(undefinedIfDamaged)
    const whole = topic.people && (await store.do(readWholeBlocks, topic.name, place).catch(undefinedIfDamaged))
    partitions.push({ topic: topic.name, ...place, stored, whole })
  }
  return partitions
}

/** Verifies that checkpoints are within the log, and that event tables contain all events before them. */
export async function damageOfCheckpoints(
  { store, log }: Pick<Engines, 'store' | 'log'>,
  loaded: readonly LoadedPartition[],
  checked: readonly CheckedPartition[],
  isWriteSideOlder: boolean
): Promise<Damage[]> {
  const damages: Damage[] = []
  // Events of an undone import are in the log, but not in the table.
  const retracted = await store.do(readRetractions)
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
      retracted.some((each) => each.topic === topic) ||
      stored === undefined ||
      stored.events + stored.deadLetters >= events
    )
      continue
    damages.push({
      part: 'checkpoints',
      what: `${table} holds ${stored.events} events of ${topic} ${epoch}/${partition} below ${next}; the log has ${events}`,
      cost: 'answers lack these events',
      repair: `${isWriteSideOlder ? 'first repair the write side; then ' : ''}${LOAD_AGAIN}`
    })
  }
  for (const { table, topic, epoch, partition, next } of await readMissingEvents(store)) {
    damages.push({
      part: 'checkpoints',
      what: `${table} lost rows of ${topic} ${epoch}/${partition}; the log has only the events from offset ${next} on`,
      cost: 'rows of earlier events may be missing',
      repair: RESTORE
    })
  }
  return damages
}

/**
 * Finds what a write side lacks that was deleted, or restored from an older copy. Of people without their keys, events show all
 * who returned since then with new keys; only the tables show those whose events the log no longer has.
 */
export async function damageOfOlderWrites(
  store: Store | undefined,
  writes: Postgres | undefined,
  { log, erasedAgain }: { readonly log: CheckedLog | undefined; readonly erasedAgain: readonly string[] }
): Promise<Damage[]> {
  if (store === undefined || writes === undefined) return []
  const kept = log === undefined ? 0 : await keptWithoutKey(store, writes, log)
  const { users, changes } = await findLostWrites(store, writes)
  const lost = Math.max(kept, users)
  const damages: Damage[] = []
  if (erasedAgain.length > 0) {
    const what = `the write side lacks ${erasedAgain.length} erasures that the tables have: it was deleted, or is older than the tables`
    const cost = 'the next start erases these users again, also what they did since they returned'
    damages.push({ part: 'writes', what, cost, repair: NEWER_WRITES })
  }
  if (lost > 0) {
    const what = `the write side has no key of ${lost} users with events in the log or the tables: it was deleted, or is older than they`
    const cost = 'their events cannot be loaded again; profiles, ratings and erasures since then are lost'
    damages.push({ part: 'writes', what, cost, repair: NEWER_WRITES })
  }
  if (changes > 0) {
    const what = `the write side lacks ${changes} changes of profiles and ratings that the tables have: it was deleted, or is older than the tables`
    const cost = 'answers show them until the same users change the same again; totals after a rating lack them'
    damages.push({ part: 'writes', what, cost, repair: NEWER_WRITES })
  }
  return damages
}

const CATCH_UP_MS_MAX = 10_000

/** Finds changes that only the write side has: log and tables are older copies. `repair` publishes them again. */
export async function damageOfOlderLog(
  {
    store,
    log,
    writes
  }: {
    readonly store: Store | undefined
    readonly log: Engines['log'] | undefined
    readonly writes: Postgres | undefined
  },
  {
    repair,
    erasedAgain,
    stopping
  }: { readonly repair: boolean; readonly erasedAgain: readonly string[]; readonly stopping: AbortSignal }
): Promise<Damage[]> {
  if (store === undefined || log === undefined || writes === undefined) return []
  const waiting = { engines: { store, log }, projector: undefined, onChange: async () => undefined, stopping }
  const haveCaughtUp = async (topics: readonly string[]) =>
    (await waitUntilCaughtUp(waiting, CATCH_UP_MS_MAX, topics)).settled
  const lost = await findLostEvents(store, writes, { erasedAgain, haveCaughtUp })
  if (lost === undefined || lost.length === 0) return []
  if (repair) await publishAgain(writes, lost)
  return [
    {
      part: 'log',
      what: `the log and the tables lack ${lost.length} changes of profiles and ratings that PostgreSQL has: they are older than it`,
      cost: 'answers from the tables lack these changes, and what else was recorded since then, such as imports and scrapes',
      repair: NEWER_LOG,
      ...(repair && {
        repaired:
          'the next start publishes these changes again; what else was recorded since then stays lost: import it again'
      })
    }
  ]
}

/** The erasures that the next start repeats, because only the tables know of them. */
export async function missingErasuresOf(store: Store | undefined, writes: Postgres | undefined): Promise<string[]> {
  if (store === undefined || writes === undefined) return []
  return await missingErasures(writes, await store.do(readAppliedErasures))
}

/** Counts people without a key whose first event is in the tables. An erasure deletes it there after the key; older tables have it again. */
async function keptWithoutKey(store: Store, writes: Postgres, { partitions }: CheckedLog): Promise<number> {
  const erased = await erasedPeople(writes)
  const people = new Set<number>()
  for (const { topic, epoch, partition, keyless } of partitions) {
    const kept = new Set(await store.do(readOffsetsOf, topic, { epoch, partition }, [...keyless.values()]))
    for (const [person, offset] of keyless) if (kept.has(offset) && !erased.has(person)) people.add(person)
  }
  return people.size
}
