import { type PartitionExtent, poll, projectionCheckpoint } from '@gamenet/schemas'
import type { LogExtents } from './ports/log.js'
import { type ServedTables, servedTables, type TableAccess } from './ports/served-tables.js'

/** Ends of a topic's partitions: all events before `next`. */
export type Heads = readonly { readonly epoch: number; readonly partition: number; readonly next: number }[]

const EVERY_MS = 100

/** Reads the current ends of a topic's partitions, without empty ones. */
export async function headsOf(log: LogExtents, topic: string): Promise<Heads> {
  return headsIn(await log.extents(topic))
}

/** Returns the ends of partitions, without empty ones. */
export function headsIn(extents: readonly PartitionExtent[]): Heads {
  return extents
    .filter(({ first, next }) => first < next)
    .map(({ epoch, partition, next }) => ({ epoch, partition, next }))
}

/** {@link headsOf}, or undefined if the log does not answer within `timeoutMs`. */
export async function headsIfKnown(
  log: LogExtents,
  topic: string,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal }
): Promise<Heads | undefined> {
  const read = () => headsOf(log, topic).catch(() => undefined)
  return poll(read, (heads) => heads !== undefined, { everyMs: EVERY_MS, ...options })
}

/** Returns the farther end per partition. */
export function furthest(heads: readonly Heads[]): Heads {
  const farthest = new Map<string, Heads[number]>()
  for (const head of heads.flat()) {
    const key = `${head.epoch}/${head.partition}`
    if (head.next > (farthest.get(key)?.next ?? 0)) farthest.set(key, head)
  }
  return [...farthest.values()]
}

/** Returns the position in a partition; 0 if there is none. */
export function nextOf(heads: Heads, at: { readonly epoch: number; readonly partition: number }): number {
  return heads.find(({ epoch, partition }) => epoch === at.epoch && partition === at.partition)?.next ?? 0
}

/** Returns whether `reached` is at or beyond `heads` in all partitions. */
export function hasCaughtUp(reached: Heads, heads: Heads): boolean {
  return heads.every(({ next, ...at }) => nextOf(reached, at) >= next)
}

/** The position up to which a projection's table is complete. */
export type TableProgress = { has(heads: Heads): boolean }

/** Reads a projection's position. */
export async function tableProgress(served: ServedTables, projection: string): Promise<TableProgress> {
  const reached = await served.positions([projectionCheckpoint(projection)])
  return { has: (heads) => hasCaughtUp(reached, heads) }
}

/**
 * Waits until a projection has consumed everything before `heads`, for at most `timeoutMs`.
 * @returns its position then, and the tables that have it
 */
export async function waitUntilCaughtUp(
  access: TableAccess,
  want: { readonly projection: string; readonly heads: Heads },
  options: { readonly timeoutMs: number; readonly signal: AbortSignal }
): Promise<{ readonly reached: TableProgress; readonly served: ServedTables }> {
  const read = async () => {
    const served = await servedTables(access)
    return { served, reached: await tableProgress(served, want.projection) }
  }
  return poll(read, ({ reached }) => reached.has(want.heads), { everyMs: EVERY_MS, ...options })
}
