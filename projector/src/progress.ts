import { loadCheckpoint, type PartitionExtent, projectionCheckpoint, topics } from '@gamenet/schemas'
import { pause } from './backoff.js'
import { Checkpoints } from './checkpoint.js'
import type { LogReader } from './log.js'
import { projections } from './projections.js'
import { lagOf } from './run-projections.js'
import type { Target } from './settled.js'
import type { Tables } from './tables.js'

/*
 * How far the loaders and projections of an installation have come, from what they left in the tables: for processes
 * that ask but do neither. A `Projector` knows more of itself (why it stands still), but nothing of its neighbours.
 */

export type ProgressNeeds = { readonly tables: Tables; readonly log: Pick<LogReader, 'extents'> }

export type TopicProgress = {
  readonly topic: string
  readonly partitions: readonly {
    readonly epoch: number
    readonly partition: number
    readonly head: number
    readonly loaded: number
  }[]
}

const ASK_AGAIN_MS = 200

/** Where each topic's partitions end and are loaded to, and how many loaded events each projection has not taken. */
export async function readProgress(needs: ProgressNeeds): Promise<{
  readonly topics: readonly TopicProgress[]
  /** Messages that could not be read, of each topic that has one. */
  readonly parked: ReadonlyMap<string, number>
  readonly projections: readonly { readonly projection: string; readonly lag: number }[]
}> {
  const extents = await extentsOf(needs)
  const checkpoints = await Checkpoints.read(needs.tables)
  return {
    topics: extents.map(([topic, partitions]) => ({
      topic,
      partitions: partitions.map(({ epoch, partition, next }) => ({
        epoch,
        partition,
        head: next,
        loaded: checkpoints.next(loadCheckpoint(topic), epoch, partition)
      }))
    })),
    parked: await parkedByTopic(needs.tables),
    projections: projections.map((each) => ({ projection: each.name, lag: lagOf(each, checkpoints) }))
  }
}

/** How many messages of each topic could not be read; topics without one are absent. */
export async function parkedByTopic(tables: Tables): Promise<Map<string, number>> {
  const rows = await tables.rows(
    'SELECT p.topic AS topic, uniqExact(p.epoch, p.partition, p.offset) AS messages FROM parked_message AS p GROUP BY p.topic'
  )
  return new Map(rows.map((row) => [String(row.topic), Number(row.messages)]))
}

/**
 * Waits until all that the log holds at the call (or everything below `targets`) is loaded and projected.
 * @returns what is still behind when `signal` aborts; empty when all can be read
 */
export async function waitForProgress(
  needs: ProgressNeeds,
  signal: AbortSignal,
  targets?: readonly Target[]
): Promise<string[]> {
  const wanted = targets ?? (await headsOf(needs))
  for (;;) {
    const behind = behindOf(wanted, await Checkpoints.read(needs.tables))
    if (behind.length === 0 || signal.aborted) return behind
    await pause(ASK_AGAIN_MS, signal)
  }
}

async function headsOf(needs: ProgressNeeds): Promise<Target[]> {
  const extents = await extentsOf(needs)
  return extents.flatMap(([topic, partitions]) =>
    partitions.filter(({ first, next }) => first < next).map((extent) => ({ topic, ...extent }))
  )
}

async function extentsOf({ log }: ProgressNeeds): Promise<[string, readonly PartitionExtent[]][]> {
  return Promise.all(topics.map(async ({ name }) => [name, await log.extents(name)]))
}

function behindOf(targets: readonly Target[], checkpoints: Checkpoints): string[] {
  const behind: string[] = []
  for (const { topic, epoch, partition, next } of targets) {
    const readers = projections.filter(({ from }) => from.name === topic).map(({ name }) => projectionCheckpoint(name))
    for (const name of [loadCheckpoint(topic), ...readers]) {
      const reached = checkpoints.next(name, epoch, partition)
      if (reached < next)
        behind.push(`${name} has come to ${reached} of ${next} in epoch ${epoch}, partition ${partition}`)
    }
  }
  return behind
}
