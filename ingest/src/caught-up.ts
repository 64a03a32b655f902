import { type PartitionExtent, poll, projectionCheckpoint, type ReadTables } from '@gamenet/schemas'
import type { LogExtents } from './ports/log.js'

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

/** The checkpoints of one reader. */
export const CHECKPOINTS_OF = `
  SELECT c.epoch AS epoch, c.partition AS partition, max(c.next) AS next
  FROM checkpoint AS c WHERE c.name = {name: String} GROUP BY c.epoch, c.partition`

/** Reads a projection's position. */
export async function tableProgress(
  tables: ReadTables,
  projection: string,
  signal?: AbortSignal
): Promise<TableProgress> {
  const rows = await tables.rows(
    CHECKPOINTS_OF,
    { name: projectionCheckpoint(projection) },
    signal === undefined ? {} : { signal }
  )
  const reached = new Map(rows.map((row) => [`${row.epoch}/${row.partition}`, Number(row.next)]))
  return {
    has: (heads) => heads.every(({ epoch, partition, next }) => (reached.get(`${epoch}/${partition}`) ?? 0) >= next)
  }
}

/**
 * Waits until a projection has consumed everything before `heads`, for at most `timeoutMs`.
 * @returns its position then
 */
export async function waitUntilCaughtUp(
  tables: ReadTables,
  want: { readonly projection: string; readonly heads: Heads },
  options: { readonly timeoutMs: number; readonly signal: AbortSignal }
): Promise<TableProgress> {
  const read = () => tableProgress(tables, want.projection, options.signal)
  return poll(read, (reached) => reached.has(want.heads), { everyMs: EVERY_MS, ...options })
}
