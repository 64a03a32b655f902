import { loadCheckpoint, type PartitionExtent, type StalledPartition, shownInstant, stallOf } from '@gamenet/schemas'
import { type Checkpoints, storeCheckpoints } from '../store/checkpoint.js'
import type { Tables } from '../store/tables.js'

/** Where a topic's partitions begin and end. */
export type TopicExtent = PartitionExtent & { readonly topic: string }

/** A partition that stands still until an operator decides, and since when; `wanted` is the first offset not loaded. */
export type StallReport = StalledPartition & { readonly loadedAt: string | null; readonly reason: string }

/** Partitions whose next offsets the log lacks: a loader stalls at them, whichever process runs it. */
export function stalledPartitions(extents: readonly TopicExtent[], checkpoints: Checkpoints): StalledPartition[] {
  return extents.flatMap(({ topic, ...extent }) => {
    const wanted = checkpoints.next(loadCheckpoint(topic), extent.epoch, extent.partition)
    return stallOf(topic, extent, wanted) ?? []
  })
}

/** Why a partition stands still, in a sentence with the way out. */
export function describeStall(
  { topic, epoch, partition, first, next, wanted, damage }: StalledPartition,
  loadedAt?: string
): string {
  const name = `${topic}, epoch ${epoch}, partition ${partition}`
  const when = loadedAt === undefined ? '' : ` (last at ${loadedAt})`
  if (damage !== undefined) {
    return (
      `${name} was loaded to ${wanted}${when}, and the log cannot be read there: ${damage}; ` +
      `repair the broker's copy, or delete its records up to the end of the batch and go on without them: gamenet gap accept ${topic}`
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

/** Stalled partitions with the instant of their last load and the reason in a sentence. */
export async function stallReports(tables: Tables, stalled: readonly StalledPartition[]): Promise<StallReport[]> {
  if (stalled.length === 0) return []
  const loadedAt = await lastLoads(tables)
  return stalled.map((stall) => {
    const at = loadedAt.get(`${loadCheckpoint(stall.topic)}/${stall.epoch}/${stall.partition}`)
    return { ...stall, loadedAt: at ?? null, reason: describeStall(stall, at) }
  })
}

async function lastLoads(tables: Tables): Promise<ReadonlyMap<string, string>> {
  const rows = await tables.rows(
    `SELECT c.name AS name, c.epoch AS epoch, c.partition AS partition,
            toUnixTimestamp64Milli(argMax(c.updated_at, c.next)) AS atMs
     FROM checkpoint AS c GROUP BY c.name, c.epoch, c.partition`
  )
  return new Map(rows.map((row) => [`${row.name}/${row.epoch}/${row.partition}`, shownInstant(Number(row.atMs))]))
}

/**
 * Goes on behind what the log has lost: notes each gap, then moves the load checkpoint to where the log begins. A crash
 * between the two notes it again. A topic that was recreated has no gap, and needs a new epoch.
 * @returns the gaps that were accepted
 */
export async function acceptGaps(tables: Tables, stalled: readonly StallReport[]): Promise<StallReport[]> {
  const gaps = stalled.filter(({ wanted, first }) => wanted < first)
  if (gaps.length === 0) return []
  const rows = gaps.map(({ topic, epoch, partition, wanted, first, loadedAt }) =>
    JSON.stringify([topic, epoch, partition, wanted, first, loadedAt?.replace('T', ' ').replace('Z', '') ?? null])
  )
  await tables.insert(
    'log_gap',
    ['topic', 'epoch', 'partition', 'first', 'next', 'loaded_at'],
    new TextEncoder().encode(`${rows.join('\n')}\n`)
  )
  await storeCheckpoints(
    tables,
    gaps.map(({ topic, epoch, partition, first }) => ({ name: loadCheckpoint(topic), epoch, partition, next: first }))
  )
  return gaps
}

/** A part of the log that was accepted as missing: offsets `first` to below `next`. */
export type AcceptedGap = {
  readonly topic: string
  readonly epoch: number
  readonly partition: number
  readonly first: number
  readonly next: number
  readonly acceptedAt: string
}

export async function acceptedGaps(tables: Tables): Promise<AcceptedGap[]> {
  const rows = await tables.rows(
    `SELECT g.topic AS topic, g.epoch AS epoch, g.partition AS partition, g.first AS first, max(g.next) AS next,
            toUnixTimestamp64Milli(max(g.accepted_at)) AS acceptedAtMs
     FROM log_gap AS g GROUP BY g.topic, g.epoch, g.partition, g.first ORDER BY g.topic, g.epoch, g.partition, g.first`
  )
  return rows.map((row) => ({
    topic: String(row.topic),
    epoch: Number(row.epoch),
    partition: Number(row.partition),
    first: Number(row.first),
    next: Number(row.next),
    acceptedAt: shownInstant(Number(row.acceptedAtMs))
  }))
}
