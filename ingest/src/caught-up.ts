import { setTimeout as delay } from 'node:timers/promises'
import { type PartitionExtent, projectionCheckpoint, type ReadTables } from '@gamenet/schemas'
import type { LogExtents } from './ports/log.js'

/** Where partitions of a topic end: everything before `next` is meant. */
export type Heads = readonly { readonly epoch: number; readonly partition: number; readonly next: number }[]

const ASK_AGAIN_MS = 100

/** Where the partitions of a topic end now. Those that hold nothing are left out. */
export async function headsOf(log: LogExtents, topic: string): Promise<Heads> {
  return headsIn(await log.extents(topic))
}

/** Where partitions end. Those that hold nothing are left out. */
export function headsIn(extents: readonly PartitionExtent[]): Heads {
  return extents
    .filter(({ first, next }) => first < next)
    .map(({ epoch, partition, next }) => ({ epoch, partition, next }))
}

/** The same, or undefined when the log could not be asked for `timeoutMs`: what is not known to be there is not waited for. */
export async function headsIfKnown(
  log: LogExtents,
  topic: string,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal }
): Promise<Heads | undefined> {
  const untilMs = performance.now() + options.timeoutMs
  for (;;) {
    const heads = await headsOf(log, topic).catch(() => undefined)
    if (heads !== undefined || performance.now() >= untilMs) return heads
    await delay(ASK_AGAIN_MS, undefined, { signal: options.signal })
  }
}

/** The farther of two heads, partition by partition. */
export function furthest(heads: readonly Heads[]): Heads {
  const farthest = new Map<string, Heads[number]>()
  for (const head of heads.flat()) {
    const key = `${head.epoch}/${head.partition}`
    if (head.next > (farthest.get(key)?.next ?? 0)) farthest.set(key, head)
  }
  return [...farthest.values()]
}

/** How far one came in a partition; 0 where it has not begun. */
export function nextOf(heads: Heads, at: { readonly epoch: number; readonly partition: number }): number {
  return heads.find(({ epoch, partition }) => epoch === at.epoch && partition === at.partition)?.next ?? 0
}

/** Whether one came as far as `heads`, in all partitions. */
export function hasCaughtUp(reached: Heads, heads: Heads): boolean {
  return heads.every(({ next, ...at }) => nextOf(reached, at) >= next)
}

/** How far a projection's table can be read. */
export type TableProgress = { has(heads: Heads): boolean }

/** Asks how far a projection has come. */
export async function tableProgress(
  tables: ReadTables,
  projection: string,
  signal?: AbortSignal
): Promise<TableProgress> {
  const rows = await tables.rows(
    `SELECT c.epoch AS epoch, c.partition AS partition, max(c.next) AS next
     FROM checkpoint AS c WHERE c.name = {name: String} GROUP BY c.epoch, c.partition`,
    { name: projectionCheckpoint(projection) },
    signal === undefined ? {} : { signal }
  )
  const reached = new Map(rows.map((row) => [`${row.epoch}/${row.partition}`, Number(row.next)]))
  return {
    has: (heads) => heads.every(({ epoch, partition, next }) => (reached.get(`${epoch}/${partition}`) ?? 0) >= next)
  }
}

/**
 * Waits until a projection has taken everything before `heads`, for `timeoutMs` at most.
 * @returns how far it has come then
 */
export async function waitUntilCaughtUp(
  tables: ReadTables,
  want: { readonly projection: string; readonly heads: Heads },
  options: { readonly timeoutMs: number; readonly signal: AbortSignal }
): Promise<TableProgress> {
  const untilMs = performance.now() + options.timeoutMs
  for (;;) {
    const reached = await tableProgress(tables, want.projection, options.signal)
    if (reached.has(want.heads) || performance.now() >= untilMs) return reached
    await delay(ASK_AGAIN_MS, undefined, { signal: options.signal })
  }
}
