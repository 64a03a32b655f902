import { errorMessage, loadCheckpoint, type Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { Projection } from '../project/projection.js'
import { lengthOf, rangeBetween } from '../project/range.js'
import type { StepContext } from '../project/step.js'
import { Checkpoints } from '../store/checkpoint.js'
import type { Tables } from '../store/tables.js'
import type { RebuildContext } from './context.js'
import { measureCosts, wholeRange } from './cost.js'
import { LOAD_COST } from './estimate.js'
import type { StepSizes } from './fill.js'
import { freeSpaceFor, type ReservedBytes } from './free-space.js'
import type { RebuildPlan } from './rebuild.js'
import { RebuildRefused } from './rebuild.js'
import { concurrentRebuild } from './rebuild-of.js'
import { readsOf, sizesOf, tablesOf } from './rebuild-tables.js'
import { type RebuildRequest, unitFor } from './unit.js'

/** Merging needs both, what is merged and what comes of it. */
const MERGING_FACTOR = 2

export type PlanWithCosts = RebuildPlan & { readonly costs: Readonly<Record<string, number>> }

/** What the rebuild that is asked for would be, and what stands in its way. */
export async function planFor(context: RebuildContext, asked: RebuildRequest): Promise<PlanWithCosts> {
  const { tables, projections, folding, signal, reservedBytes: keepFree, sizes, process } = context
  const unit = unitFor(projections, asked)
  const [first] = unit
  const plan = await planOf({ tables, folding, signal }, unit, {
    live: await Checkpoints.read(tables),
    reloaded: asked.isFromLog ? first?.from : undefined,
    keepFree,
    sizes,
    process
  })
  const other = await concurrentRebuild(context, asked)
  const obstacles = other === undefined ? plan.obstacles : [other, ...plan.obstacles]
  return { ...plan, projection: asked.projection, obstacles }
}

/** A plan without obstacles. Another rebuild is looked for before a sample is measured, which takes long. */
export async function planWithoutObstacles(context: RebuildContext, asked: RebuildRequest): Promise<PlanWithCosts> {
  await requireNoConcurrentRebuild(context, asked)
  const plan = await planFor(context, asked)
  if (plan.obstacles.length > 0) throw new RebuildRefused(plan.obstacles.join(' '))
  return plan
}

/** Throws a {@link RebuildRefused} while another rebuild has some of the projections. */
export async function requireNoConcurrentRebuild(context: RebuildContext, asked: RebuildRequest): Promise<void> {
  const other = await concurrentRebuild(context, asked)
  if (other !== undefined) throw new RebuildRefused(other)
}

/** What a rebuild of a unit will read, write and take, measured on a sample just now. */
async function planOf(
  making: StepContext,
  unit: readonly Projection[],
  by: {
    readonly live: Checkpoints
    readonly reloaded: Topic | undefined
    readonly keepFree: ReservedBytes
    readonly sizes: StepSizes
    readonly process: string
  }
): Promise<PlanWithCosts> {
  const { live, reloaded } = by
  const costs = await measureCosts(making, unit, live, by).catch((error: unknown) => {
    const names = unit.map(({ name }) => name).join(', ')
    throw new Error(`No sample of ${names} could be measured, so nothing was begun. ${errorMessage(error)}`, {
      cause: error
    })
  })
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
  const fromLog = reloaded === undefined ? null : await reloadOf(making.tables, reloaded, live)
  const writes = [...planned.flatMap((each) => each.writes), ...(fromLog === null ? [] : [fromLog.writes])]
  const bytes = writes.reduce((sum, { bytes: each }) => sum + each, 0)
  const bytesNeeded = MERGING_FACTOR * bytes
  const { bytesFree, obstacles } = await freeSpaceFor(making.tables, bytesNeeded, by.keepFree)
  return {
    projection: unit[0]?.name ?? '',
    fromLog,
    unit: planned,
    events: planned.reduce((sum, { events }) => sum + events, fromLog?.events ?? 0),
    bytesNeeded,
    bytesFree,
    seconds: planned.reduce((sum, { seconds }) => sum + (seconds ?? 0), fromLog?.seconds ?? 0),
    obstacles,
    costs
  }
}

/** The event table that is loaded from the log first. */
async function reloadOf(tables: Tables, topic: Topic, live: Checkpoints): Promise<NonNullable<RebuildPlan['fromLog']>> {
  const table = eventTableName(topic)
  const { rows, bytes } = (await sizesOf(tables, [table])).get(table) ?? { rows: 0, bytes: 0 }
  const events = lengthOf(rangeBetween(() => 0, live.of(loadCheckpoint(topic.name)), Infinity))
  return { topic: topic.name, writes: { table, rows, bytes }, events, seconds: events * LOAD_COST }
}
