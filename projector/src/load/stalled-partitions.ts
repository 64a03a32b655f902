import { loadCheckpoint, type PartitionExtent, type StalledPartition, shownInstant, stallOf } from '@gamenet/schemas'
import { storeAt } from '../generations/generations.js'
import { projections } from '../projections/projections.js'
import { type Checkpoints, readCheckpointInstants, storeCheckpoints } from '../store/checkpoint.js'
import { type LogGap, readGaps, storeGaps } from '../store/log-gap.js'
import type { Store } from '../store/operation.js'

/** The extent of a topic's partition. */
export type TopicExtent = PartitionExtent & { readonly topic: string }

/** A stalled partition, and since when; `wanted` is the first offset that is not loaded. */
export type StallReport = StalledPartition & { readonly loadedAt: string | null; readonly reason: string }

/** Returns partitions whose next offsets the log lacks: every loader stalls at them. */
export function stalledPartitions(extents: readonly TopicExtent[], checkpoints: Checkpoints): StalledPartition[] {
  return extents.flatMap(({ topic, ...extent }) => {
    const wanted = checkpoints.next(loadCheckpoint(topic), extent.epoch, extent.partition)
    return stallOf(topic, extent, wanted) ?? []
  })
}

/** Returns why a partition is stalled, and how to resolve it, as a sentence. */
export function describeStall(
  { topic, epoch, partition, first, next, wanted, damage }: StalledPartition,
  loadedAt?: string
): string {
  const name = `${topic}, epoch ${epoch}, partition ${partition}`
  const when = loadedAt === undefined ? '' : ` (last at ${loadedAt})`
  if (damage !== undefined) {
    return (
      `${name} was loaded to ${wanted}${when}, and the log cannot be read there: ${damage}; ` +
      `repair the broker's copy, or delete its records up to the end of the batch and continue without them: gamenet ` +
      `gap accept ${topic}`
    )
  }
  if (wanted > next) {
    return (
      `${name} was loaded to ${wanted}${when}, and the log ends at ${next}: ` +
      'the log was recreated or restored from an older state, and its epoch must be raised (LOG_EPOCH)'
    )
  }
  return (
    `${name} was loaded to ${wanted}${when}, and the log begins at ${first}: ` +
    `offsets ${wanted} to ${first - 1} were deleted by its retention; ` +
    `restore a backup that contains them, or continue without them: gamenet gap accept ${topic}`
  )
}

/** Returns stalled partitions with the instant of their last load and the reason as a sentence. */
export async function stallReports(store: Store, stalled: readonly StalledPartition[]): Promise<StallReport[]> {
  if (stalled.length === 0) return []
  const loadedAt = await (await storeAt('writes', store, projections)).do(readCheckpointInstants)
  return stalled.map((stall) => {
    const atMs = loadedAt.get(`${loadCheckpoint(stall.topic)}/${stall.epoch}/${stall.partition}`)
    const at = atMs === undefined ? undefined : shownInstant(atMs)
    return { ...stall, loadedAt: at ?? null, reason: describeStall(stall, at) }
  })
}

/**
 * Continues after lost events: records each gap, then moves the load checkpoint to the beginning of the log. A crash in
 * between records it again. A topic that was recreated has no gap, and needs a new epoch.
 * @returns the accepted gaps
 */
export async function acceptGaps(store: Store, stalled: readonly StallReport[]): Promise<StallReport[]> {
  const gaps = stalled.filter(({ wanted, first }) => wanted < first)
  if (gaps.length === 0) return []
  await store.do(
    storeGaps,
    gaps.map(({ wanted, first, ...gap }) => ({ ...gap, first: wanted, next: first }))
  )
  const written = await storeAt('writes', store, projections)
  await written.do(
    storeCheckpoints,
    gaps.map(({ topic, epoch, partition, first }) => ({ name: loadCheckpoint(topic), epoch, partition, next: first }))
  )
  return gaps
}

/** An accepted gap of the log: offsets `first` to below `next`. */
export type AcceptedGap = LogGap & { readonly acceptedAt: string }

export async function acceptedGaps(store: Store): Promise<AcceptedGap[]> {
  const gaps = await store.do(readGaps)
  return gaps.map(({ acceptedAtMs, ...gap }) => ({ ...gap, acceptedAt: shownInstant(acceptedAtMs) }))
}
