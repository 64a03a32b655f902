import {
  errorMessage,
  generationName,
  Instant,
  importRetractionTopic,
  instantOf,
  loadCheckpoint,
  millisecondsOf,
  projectionCheckpoint,
  rangeBetween,
  type Topic
} from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { StepContext } from '../folding/step.js'
import { filledByOwn, ownerOf } from '../generations/generations.js'
import { Checkpoints, type Progress } from '../store/checkpoint.js'
import { readLostBookkeeping } from '../store/damage.js'
import { createKnownView } from '../store/event-table.js'
import { eventOwner, namesOf, type Owner, storeFilled } from '../store/generation.js'
import { copyConsumed } from '../store/late-batch.js'
import type { Store } from '../store/operation.js'
import { type Projection, readsOf, tablesOf } from '../store/projection.js'
import { lengthOf } from '../store/range.js'
import { createEventView, readSizes, type TableSize } from '../store/table.js'
import { type Live, liveOf, type RebuildContext, requireSoundSources } from './context.js'
import { type RebuildPlan, RebuildRefused } from './contract.js'
import { type Measured, measureCosts, wholeRange } from './cost.js'
import { LOAD_COST } from './estimate.js'
import { sizesAt } from './fill.js'
import { concurrentRebuild } from './find-rebuild.js'
import { freeSpaceFor } from './free-space.js'
import { nextId } from './leftovers.js'
import { type RebuildRecord, storeRebuild } from './rebuild-record.js'
import { createTables } from './rebuild-tables.js'
import { type RebuildRequest, unitFor } from './unit.js'

/** A merge needs space for the parts that it reads and for the part that it writes. */
const MERGING_FACTOR = 2

type MeasuredPlan = RebuildPlan & { readonly measured: Measured }

/**
 * Returns the tables that a rebuild reads and writes, its duration by a sample that is measured now, and the obstacles
 * to it.
 */
export async function planFor(context: RebuildContext, request: RebuildRequest): Promise<MeasuredPlan> {
  const { projections, folding, signal, reservedBytes, process } = context
  const unit = unitFor(projections, request)
  const live = await liveOf(context)
  const { store } = live
  const checkpoints = await Checkpoints.read(store)
  // A sample contains rows of people: an erasure waits for steps that may still store some.
  const sampling: StepContext = { store, folding, signal, inStep: (step) => context.steps.run(step) }
  const as = { sizes: sizesAt(context.sizes, request.rate ?? null), process }
  const measured = await measureCosts(sampling, unit, { live, checkpoints }, as).catch((error: unknown) => {
    const names = unit.map(({ name }) => name).join(', ')
    throw new Error(`No sample of ${names} could be measured, so nothing was begun. ${errorMessage(error)}`, {
      cause: error
    })
  })
  const sizes = await sizesOf(live, unit.flatMap(tablesOf))
  const planned = unit.map((projection) => {
    const { name } = projection
    const events = lengthOf(wholeRange(projection, checkpoints))
    const cost = measured.costs[name]
    return {
      projection: name,
      reads: [...readsOf(projection)],
      writes: tablesOf(projection).map((table) => ({ table, ...(sizes.get(table) ?? { rows: 0, bytes: 0 }) })),
      events,
      seconds: cost === undefined ? null : cost * events
    }
  })
  const reloaded = request.isFromLog ? unit[0]?.from : undefined
  const fromLog = reloaded === undefined ? null : await reloadOf(live, reloaded, checkpoints)
  const writes = [...planned.flatMap((each) => each.writes), ...(fromLog === null ? [] : [fromLog.writes])]
  const bytesNeeded = MERGING_FACTOR * writes.reduce((sum, { bytes }) => sum + bytes, 0)
  const { bytesFree, obstacles } = await freeSpaceFor(store, bytesNeeded, reservedBytes)
  const other = await concurrentRebuild(context, request)
  return {
    projection: request.projection,
    fromLog,
    unit: planned,
    events: planned.reduce((sum, { events }) => sum + events, fromLog?.events ?? 0),
    bytesNeeded,
    bytesFree,
    seconds: planned.reduce((sum, { seconds }) => sum + (seconds ?? 0), fromLog?.seconds ?? 0),
    previewRows: 2 * planned.flatMap((each) => each.writes).reduce((sum, { rows }) => sum + rows, 0),
    obstacles: other === undefined ? obstacles : [other, ...obstacles],
    measured
  }
}

/**
 * Returns a plan without obstacles, or throws a {@link RebuildRefused}; first for another rebuild, because a sample
 * takes long.
 */
export async function planWithoutObstacles(context: RebuildContext, request: RebuildRequest): Promise<MeasuredPlan> {
  await requireNoConcurrentRebuild(context, request)
  const unit = unitFor(context.projections, request)
  await requireSoundSources(context, unit, request.isFromLog ? unit[0]?.from : undefined)
  const plan = await planFor(context, request)
  if (plan.obstacles.length > 0) throw new RebuildRefused(plan.obstacles.join(' '))
  return plan
}

/** Throws a {@link RebuildRefused} while another rebuild has some of the projections. */
export async function requireNoConcurrentRebuild(context: RebuildContext, request: RebuildRequest): Promise<void> {
  const other = await concurrentRebuild(context, request)
  if (other !== undefined) throw new RebuildRefused(other)
}

/** Returns the estimate for the event table that is loaded from the log first. */
async function reloadOf(
  live: Live,
  topic: Topic,
  checkpoints: Checkpoints
): Promise<NonNullable<RebuildPlan['fromLog']>> {
  const table = eventTableName(topic)
  const { rows, bytes } = (await sizesOf(live, [table])).get(table) ?? { rows: 0, bytes: 0 }
  const events = lengthOf(rangeBetween(() => 0, checkpoints.of(loadCheckpoint(topic.name)), Infinity))
  return { topic: topic.name, writes: { table, rows, bytes }, events, seconds: events * LOAD_COST }
}

/** Returns rows and bytes of the tables that live steps write. */
async function sizesOf({ store, names }: Live, tables: readonly string[]): Promise<ReadonlyMap<string, TableSize>> {
  const used = tables.map((table) => [table, names.get(table) ?? table] as const)
  const sizes = await store.do(
    readSizes,
    used.map(([, name]) => name)
  )
  return new Map(used.map(([table, name]) => [table, sizes.get(name) ?? { rows: 0, bytes: 0 }]))
}

/**
 * Begins a rebuild while no step of a rebuild runs in any process: the second of two simultaneous ones finds the first.
 */
export async function beginRebuild(
  context: RebuildContext,
  request: RebuildRequest,
  prepare: () => Promise<void> = async () => undefined
): Promise<RebuildRecord> {
  const { measured } = await planWithoutObstacles(context, request)
  return await context.steps.exclusive(async (check) => {
    await requireNoConcurrentRebuild(context, request)
    await prepare()
    return await createRecord(context, request, measured, check)
  })
}

/**
 * Creates the empty tables of a rebuild, then its record, with which the rebuild exists.
 * @param check rejects when another process may have begun a rebuild of the same number
 */
async function createRecord(
  context: RebuildContext,
  request: RebuildRequest,
  { costs, cuts }: Measured,
  check: () => Promise<void>
): Promise<RebuildRecord> {
  const { store, projections } = context
  const live = await liveOf(context)
  const { until, isByRecording, isFromLog } = request
  const unit = unitFor(projections, request)
  const end = until === null ? undefined : endOf(until, isByRecording)
  const checkpoints = await Checkpoints.read(live.store)
  const isRepair = request.isAutomatic && request.retracts === null && request.others === undefined
  const isWithoutCheckpoints = isRepair && (await store.do(readLostBookkeeping)).includes('checkpoint')
  const target = isWithoutCheckpoints
    ? await wholeTargetOf(context, unit, isFromLog ? undefined : checkpoints)
    : targetOf(unit, checkpoints, end)
  const id = await reserveNumber(context, unit)
  const reloaded = isFromLog ? unit.slice(0, 1).map(({ from }) => from) : []
  const owners = [...reloaded.map(eventOwner), ...unit.map(ownerOf)]
  const written = owners.flatMap(({ tables }) => tables)
  const fresh = Object.fromEntries(written.map((table) => [table, generationName(table, id)]))
  const helpers: Record<string, string> = isFromLog ? { dead_letter: generationName('dead_letter', id) } : {}
  const own = Object.entries({ ...fresh, ...helpers })
  await createTables(store, new Map(own.map(([table, name]) => [live.names.get(table) ?? table, name])))
  // The event tables contain the late events that were consumed. The log has them in a form that may be unreadable: an
  // event table that is loaded from the log consumes every late batch again.
  if (!isFromLog) {
    const names = new Map(owners.flatMap((owner) => [...namesOf(owner, id)]))
    const consumers = owners.map(({ owner }) => owner)
    await store.with({ names }).do(copyConsumed, live.names, consumers)
  }
  if (end?.atMs !== undefined) Object.assign(helpers, await createViews(live, unit, id, end.atMs, isByRecording))
  const events = Object.fromEntries([
    ...reloaded.map(({ name }) => [loadCheckpoint(name), eventsTo(target[name])]),
    ...unit.map(({ name, from }) => [name, eventsTo(target[from.name])])
  ])
  await check()
  return await storeNewRecord(store, request, { id, unit, owners, helpers, target, events, cuts, costs })
}

/** Returns the number of a new rebuild, which no other one gets, even if this attempt leaves nothing else. */
export async function reserveNumber({ store }: RebuildContext, unit: readonly Projection[]): Promise<number> {
  const id = await nextId(store)
  await store.do(
    storeFilled,
    unit.map((each) => filledByOwn(each, id))
  )
  return id
}

/** Stores the record of a rebuild, with which it exists. */
export async function storeNewRecord(
  store: Store,
  { projection, until, isByRecording = false, isFromLog, rate, key, retracts, isAutomatic }: RebuildRequest,
  made: Pick<RebuildRecord, 'id' | 'helpers' | 'target' | 'events' | 'cuts' | 'costs'> & {
    readonly unit: readonly Projection[]
    readonly owners: readonly Owner[]
  }
): Promise<RebuildRecord> {
  const { id, unit, owners, ...rest } = made
  const now = new Date().toISOString()
  const record: RebuildRecord = {
    ...{ id, projection, until, isByRecording, isFromLog, rate: rate ?? null, key: key ?? null },
    ...{ retracts, isAutomatic },
    unit: unit.map(({ name }) => name),
    waiting: owners.map(({ owner, tables }) => ({ owner, tables: [...tables], generation: id })),
    ...{ state: 'filling', reason: null, startedAt: now, changedAt: now },
    ...rest,
    ...{ verification: null, replaces: null, version: 0 }
  }
  return await storeRebuild(store, record, {})
}

const eventsTo = (target: readonly Progress[] = []): number => lengthOf(rangeBetween(() => 0, target, Infinity))

/** The option that takes the end of a rebuild for inspection. */
export const optionOf = (isByRecording: boolean): string => (isByRecording ? '--recorded-until' : '--until')

/** Parses the operator's `until`. */
type End = { readonly until: string; readonly atMs?: number; readonly offset?: number }

function endOf(until: string, isByRecording = false): End {
  const option = optionOf(isByRecording)
  if (/^\d+$/.test(until) && !isByRecording) return { until, offset: Number(until) }
  // Later than every instant that can be stored.
  const isFuture = /^\d{4,}-/.test(until) && Date.parse(until) > Date.now()
  // A day means its start.
  const instant = /^\d{4}-\d{2}-\d{2}$/.test(until) ? `${until}T00:00:00Z` : until
  if (Instant.safeParse(instant).success && !isFuture) return { until, atMs: millisecondsOf(instant) }
  if (isFuture)
    throw new RebuildRefused(
      `${option} ${until} is in the future; it is ${instantOf(Math.floor(Date.now() / 1000) * 1000)} now. Give an ` +
        'earlier instant, or omit it to rebuild up to the end.',
      { isUsage: true }
    )
  throw new RebuildRefused(
    `${option} takes an instant, such as 2026-03-14T20:00:00Z, or 2026-03-14 for the start of that day` +
      `${isByRecording ? '' : ', or an offset, such as 120000'}; got ${JSON.stringify(until)}.`,
    { isUsage: true }
  )
}

/**
 * Returns where each topic's fill ends: at the lowest checkpoint of the unit's live tables, or at an earlier offset.
 */
function targetOf(unit: readonly Projection[], live: Checkpoints, end: End | undefined): Record<string, Progress[]> {
  const target: Record<string, Progress[]> = {}
  for (const topic of new Set(unit.map(({ from }) => from.name))) {
    const ofTopic = unit.filter(({ from }) => from.name === topic)
    target[topic] = live.of(loadCheckpoint(topic)).map(({ epoch, partition }) => {
      const reached = ofTopic.map(({ name }) => live.next(projectionCheckpoint(name), epoch, partition))
      return { epoch, partition, next: Math.min(...reached, end?.offset ?? Infinity) }
    })
  }
  const places = Object.values(target).flat()
  const offset = end?.offset
  if (offset !== undefined && !places.some(({ next }) => next >= offset)) {
    const most = Math.max(0, ...places.map(({ next }) => next))
    throw new RebuildRefused(
      `--until ${end?.until} is in the future: the live tables hold offsets up to ${most}. Give a lower one, or ` +
        'omit it to rebuild up to the end.',
      { isUsage: true }
    )
  }
  return target
}

/** Creates views on event tables without the events from an instant on, or of those known at it. */
async function createViews(
  live: Live,
  unit: readonly Projection[],
  id: number,
  atMs: number,
  isByRecording = false
): Promise<Record<string, string>> {
  const views: Record<string, string> = {}
  const named = (table: string) => live.names.get(table) ?? table
  const retractions = named(eventTableName(importRetractionTopic))
  for (const topic of new Set(unit.map(({ from }) => from))) {
    const table = eventTableName(topic)
    const view = generationName(table, id)
    views[table] = view
    if (isByRecording) await live.store.do(createKnownView, view, { table: named(table), retractions, topic }, atMs)
    else await live.store.do(createEventView, view, named(table), atMs)
  }
  return views
}

/**
 * Returns where each topic's fill ends when checkpoints were lost: at the end of the log, because those of the live
 * tables begin again, and what is swapped in earlier would lack rows. Throws a {@link RebuildRefused} until the live
 * event tables, with these checkpoints, are complete; undefined if the rebuild loads its own.
 */
async function wholeTargetOf(
  { loader }: RebuildContext,
  unit: readonly Projection[],
  live: Checkpoints | undefined
): Promise<Record<string, Progress[]>> {
  const target: Record<string, Progress[]> = {}
  for (const topic of new Set(unit.map(({ from }) => from.name))) {
    const ends = await loader.extents(topic)
    if (ends.some(({ epoch, partition, next }) => live && live.next(loadCheckpoint(topic), epoch, partition) < next))
      throw new RebuildRefused(`The events of ${topic} are loaded again first, because checkpoints were lost.`)
    target[topic] = ends.map(({ epoch, partition, next }) => ({ epoch, partition, next }))
  }
  return target
}
