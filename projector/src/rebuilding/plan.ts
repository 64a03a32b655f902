import type { Checkpoints } from '../checkpoint.js'
import type { Making } from '../make-rows.js'
import type { Projection } from '../projection.js'
import { lengthOf } from '../range.js'
import { measureCosts, wholeRange } from './cost.js'
import { readsOf, sizesOf, tablesOf } from './fresh-tables.js'
import type { RebuildPlan } from './rebuild.js'
import { type KeepFree, roomFor } from './room.js'

/** Merging needs both, what is merged and what comes of it. */
const MERGING_FACTOR = 2

/** What a rebuild of a unit will read, write and take, measured on a sample just now. */
export async function planOf(
  making: Making,
  unit: readonly Projection[],
  live: Checkpoints,
  keepFree: KeepFree
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
  const { bytesFree, obstacles } = await roomFor(making.tables, bytesNeeded, keepFree)
  return {
    projection: unit[0]?.name ?? '',
    unit: planned,
    events: planned.reduce((sum, { events }) => sum + events, 0),
    bytesNeeded,
    bytesFree,
    seconds: planned.reduce((sum, { seconds }) => sum + (seconds ?? 0), 0),
    obstacles,
    costs
  }
}
