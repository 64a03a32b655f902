import type { Checkpoints } from '../checkpoint.js'
import type { Making } from '../make-rows.js'
import type { Projection } from '../projection.js'
import { lengthOf } from '../range.js'
import type { Tables } from '../tables.js'
import { measureCosts, wholeRange } from './cost.js'
import { readsOf, sizesOf, tablesOf } from './fresh-tables.js'
import type { RebuildPlan } from './rebuild.js'

/** Merging needs both, what is merged and what comes of it. */
const MERGING_FACTOR = 2
/** Left free beside it, in bytes. */
const SPARE_BYTES = 256 * 1024 * 1024

/** What a rebuild of a unit will read, write and take, measured on a sample just now. */
export async function planOf(
  making: Making,
  unit: readonly Projection[],
  live: Checkpoints
): Promise<RebuildPlan & { readonly costs: Readonly<Record<string, number>> }> {
  const costs = await measureCosts(making, unit, live)
  const sizes = await sizesOf(making.tables, unit.flatMap(tablesOf))
  const planned = unit.map((projection) => {
    const { name } = projection
    const events = lengthOf(wholeRange(projection, live))
    const cost = costs[name]
    return {
      projection: name,
      reads: [...readsOf(projection)],
      writes: tablesOf(projection).map((table) => ({ table, ...(sizes.get(table) ?? { rows: 0, bytes: 0 }) })),
      events,
      seconds: cost === undefined ? null : cost * events
    }
  })
  const bytes = planned.flatMap(({ writes }) => writes).reduce((sum, { bytes: each }) => sum + each, 0)
  const bytesNeeded = MERGING_FACTOR * bytes
  const bytesFree = await freeBytes(making.tables)
  return {
    projection: unit[0]?.name ?? '',
    unit: planned,
    events: planned.reduce((sum, { events }) => sum + events, 0),
    bytesNeeded,
    bytesFree,
    seconds: planned.reduce((sum, { seconds }) => sum + (seconds ?? 0), 0),
    obstacles: noRoom(bytesNeeded, bytesFree),
    costs
  }
}

/** A sentence where the disk has not so many bytes, with what is kept free. */
export function noRoom(bytesNeeded: number, bytesFree: number | null): string[] {
  if (bytesFree === null || bytesFree >= bytesNeeded + SPARE_BYTES) return []
  return [
    `The disk has ${mebibytes(bytesFree)} MiB free, and ${mebibytes(bytesNeeded + SPARE_BYTES)} MiB are needed: make room, or drop what an earlier rebuild left (gamenet rebuild status).`
  ]
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / 1024 / 1024)
}

/** Free bytes of the fullest disk; null where the engine has none. */
export async function freeBytes(tables: Tables): Promise<number | null> {
  const [row] = await tables.rows('SELECT count() AS disks, min(d.unreserved_space) AS free FROM system.disks AS d')
  return Number(row?.disks ?? 0) === 0 ? null : Number(row?.free)
}
