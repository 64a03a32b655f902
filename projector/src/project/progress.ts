import { loadCheckpoint, type PartitionExtent, topics, withTimeout } from '@gamenet/schemas'
import { storeAt } from '../generations/generations.js'
import type { LogReader } from '../load/log.js'
import { type StallReport, stalledPartitions, stallReports } from '../load/stalled-partitions.js'
import { projections } from '../projections/projections.js'
import { Checkpoints } from '../store/checkpoint.js'
import { countDeadLetters } from '../store/dead-letter.js'
import type { Store } from '../store/operation.js'
import { lagOf } from './plan.js'

/*
 * Progress of the loaders and projections of all processes, from the tables and the log: for processes without a
 * projector. `Projector.status` also has the reasons of failures, but only of its own process.
 */

export type ProgressNeeds = {
  readonly store: Store
  readonly log: Pick<LogReader, 'extents'> & {
    /** The epochs that the log has; in each of them it should have all loaded topics. Absent: those with events. */
    readonly epochs?: readonly number[]
  }
}

export type TopicProgress = {
  readonly topic: string
  readonly partitions: readonly {
    readonly epoch: number
    readonly partition: number
    /** Offset of the next append; null while the log is unavailable. */
    readonly head: number | null
    readonly loaded: number
  }[]
}

const EXTENTS_MS = 2000

/** Reads the head and the loaded position of every partition, and the lag of every projection. */
export async function readProgress(needs: ProgressNeeds): Promise<{
  readonly topics: readonly TopicProgress[]
  /** Pending dead letters by topic; topics without one are absent. */
  readonly deadLetters: ReadonlyMap<string, number>
  readonly projections: readonly { readonly projection: string; readonly lag: number }[]
  readonly stalled: readonly StallReport[]
}> {
  // Read before the log: events that are loaded meanwhile must not exceed its extents.
  const store = await storeAt('reads', needs.store, projections)
  const before = await Checkpoints.read(store)
  const extents = await answeredExtents(needs.log)
  const checkpoints = await Checkpoints.read(store)
  return {
    topics: topics.map(({ name }) => topicProgress(name, extents.get(name), checkpoints)),
    deadLetters: await needs.store.do(countDeadLetters),
    projections: projections.map((each) => ({ projection: each.name, lag: lagOf(each, checkpoints) })),
    stalled: await stallReports(needs.store, stalledPartitions(placed(extents), before))
  }
}

/** Returns the extents of every topic that answers in time; an unavailable log must not delay status requests. */
export async function answeredExtents(
  log: ProgressNeeds['log']
): Promise<ReadonlyMap<string, readonly PartitionExtent[]>> {
  const extents = new Map<string, readonly PartitionExtent[]>()
  const requests = topics.map(async ({ name }) => {
    extents.set(name, await log.extents(name))
  })
  await withTimeout(Promise.allSettled(requests), EXTENTS_MS, () => undefined)
  return new Map(extents)
}

/** Returns the loaded position and the head of each partition; without `extents`, the heads are null. */
export function topicProgress(
  topic: string,
  extents: readonly PartitionExtent[] | undefined,
  checkpoints: Checkpoints
): TopicProgress {
  const name = loadCheckpoint(topic)
  const heads = new Map<string, { epoch: number; partition: number; head: number | null }>()
  for (const { epoch, partition } of checkpoints.of(name)) {
    heads.set(`${epoch}/${partition}`, { epoch, partition, head: null })
  }
  for (const { epoch, partition, next } of extents ?? []) {
    heads.set(`${epoch}/${partition}`, { epoch, partition, head: next })
  }
  const partitions = [...heads.values()].map((each) => ({
    ...each,
    loaded: checkpoints.next(name, each.epoch, each.partition)
  }))
  return { topic, partitions }
}

/** Reads the stalled partitions of one topic, by default of all. */
export async function readStalls(needs: ProgressNeeds, topic?: string): Promise<StallReport[]> {
  const checkpoints = await Checkpoints.read(await storeAt('writes', needs.store, projections))
  const extents = placed(
    await Promise.all(topics.map(async ({ name }) => [name, await needs.log.extents(name)] as const))
  )
  const isHere = (place: { topic: string; epoch: number; partition: number }) =>
    extents.some(
      (each) => each.topic === place.topic && each.epoch === place.epoch && each.partition === place.partition
    )
  const emptied = topics.flatMap(({ name }) =>
    checkpoints
      .of(loadCheckpoint(name))
      .map(({ epoch, partition }) => ({ topic: name, epoch, partition, first: 0, next: 0 }))
      .filter((place) => needs.log.epochs?.includes(place.epoch) === true && !isHere(place))
  )
  const stalled = stalledPartitions([...extents, ...emptied], checkpoints)
  return await stallReports(
    needs.store,
    stalled.filter((stall) => topic === undefined || stall.topic === topic)
  )
}

/** Returns the extents of all topics as one list. */
export function placed(
  extents: Iterable<readonly [string, readonly PartitionExtent[]]>
): (PartitionExtent & { readonly topic: string })[] {
  return [...extents].flatMap(([topic, partitions]) => partitions.map((each) => ({ topic, ...each })))
}
