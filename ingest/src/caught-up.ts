import { type Heads, headsOf, type LogExtents, poll, projectionCheckpoint } from '@gamenet/schemas'
import { type ServedTables, servedTables, type TableAccess } from './ports/served-tables.js'

const EVERY_MS = 100

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
 * Reads the served tables' positions until they have caught up, for at most `timeoutMs`.
 * @returns the last positions, and the tables that have them
 */
export async function pollTables<Reached>(
  access: TableAccess,
  positionsOf: (served: ServedTables) => Promise<Reached>,
  hasCaughtUp: (reached: Reached) => boolean,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined }
): Promise<{ readonly reached: Reached; readonly served: ServedTables }> {
  const read = async () => {
    const served = await servedTables(access)
    return { served, reached: await positionsOf(served) }
  }
  return poll(read, ({ reached }) => hasCaughtUp(reached), { everyMs: EVERY_MS, ...options })
}

/** Waits until a projection has consumed everything before `heads`: {@link pollTables}. */
export async function waitForTable(
  access: TableAccess,
  { projection, heads }: { readonly projection: string; readonly heads: Heads },
  options: { readonly timeoutMs: number; readonly signal: AbortSignal }
): Promise<{ readonly reached: TableProgress; readonly served: ServedTables }> {
  return pollTables(
    access,
    (served) => tableProgress(served, projection),
    (reached) => reached.has(heads),
    options
  )
}
