import { Instant, instantOf, loadCheckpoint, millisecondsOf, projectionCheckpoint } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { Projection } from '../project/projection.js'
import { lengthOf, rangeBetween } from '../project/range.js'
import { Checkpoints, type Progress } from '../store/checkpoint.js'
import { definitionOf } from '../store/serving-definitions.js'
import type { Tables } from '../store/tables.js'
import type { RebuildContext } from './context.js'
import { isFilledByKeys, slicesFor } from './fill.js'
import { dropTablesOf } from './leftovers.js'
import { planWithoutObstacles, requireNoConcurrentRebuild } from './plan.js'
import { RebuildRefused } from './rebuild.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { createTables, freshName, tablesOf } from './rebuild-tables.js'
import { type RebuildRequest, unitFor } from './unit.js'

type Beginning = RebuildRequest & {
  /** Seconds an event costs, by projection. */
  readonly costs: Readonly<Record<string, number>>
}

/** Begins a rebuild while no process's does anything: of two that begin at once, the second finds the first. */
export async function beginRebuild(
  context: RebuildContext,
  asked: RebuildRequest,
  prepare: () => Promise<void> = async () => undefined
): Promise<RebuildRecord> {
  const { costs } = await planWithoutObstacles(context, asked)
  return await context.steps.exclusive(async (check) => {
    await requireNoConcurrentRebuild(context, asked)
    await prepare()
    return await begin(context, { ...asked, costs }, check)
  })
}

/**
 * Makes the empty tables of a rebuild and its record, which is what makes it exist.
 * @param check rejects where another may have begun one of this number meanwhile
 */
async function begin(
  context: RebuildContext,
  beginning: Beginning,
  check: () => Promise<void>
): Promise<RebuildRecord> {
  const { tables, projections } = context
  const { projection, until, isFromLog, retracts, costs } = beginning
  const unit = unitFor(projections, beginning)
  const end = until === null ? undefined : endOf(until)
  const live = await Checkpoints.read(tables)
  const target = targetOf(unit, live, end)
  const id = Math.max(0, ...(await readRebuilds(tables)).map((each) => each.id)) + 1
  const reloaded = isFromLog ? unit.slice(0, 1).map(({ from }) => from) : []
  const written = [...reloaded.map(eventTableName), ...unit.flatMap(tablesOf)]
  const fresh = Object.fromEntries(written.map((table) => [table, freshName(table, id)]))
  const own = ['checkpoint', 'late_batch_taken', ...(isFromLog ? ['parked_message'] : [])]
  const helpers: Record<string, string> = Object.fromEntries(own.map((table) => [table, freshName(table, id)]))
  await dropTablesOf(tables, id)
  await createTables(tables, new Map(Object.entries({ ...fresh, ...helpers })))
  // What was taken late before stands in the event tables, in its place. The log has it as it could perhaps not be read: an
  // event table that is loaded from there takes every batch again.
  if (!isFromLog) {
    await tables.execute(
      `INSERT INTO ${helpers.late_batch_taken} (id, taker) SELECT t.id, t.taker FROM late_batch_taken AS t`
    )
  }
  if (end?.beforeMs !== undefined) Object.assign(helpers, await createViews(tables, unit, id, end.beforeMs))
  const events = Object.fromEntries([
    ...reloaded.map(({ name }) => [loadCheckpoint(name), eventsTo(target[name])]),
    ...unit.map(({ name, from }) => [name, eventsTo(target[from.name])])
  ])
  const byKeys = unit.filter(isFilledByKeys)
  const now = new Date().toISOString()
  await check()
  return await storeRebuild(
    tables,
    {
      id,
      projection,
      unit: unit.map(({ name }) => name),
      tables: fresh,
      helpers,
      state: 'filling',
      reason: null,
      until,
      isFromLog,
      retracts,
      startedAt: now,
      changedAt: now,
      target,
      events,
      slices: Object.fromEntries(
        byKeys.map((each) => [each.name, slicesFor(each, events[each.name] ?? 0, context.sizes)])
      ),
      costs: { ...costs },
      verification: null,
      definitions: Object.fromEntries(unit.map((each) => [each.name, definitionOf(each)])),
      exchange: null,
      version: 0
    },
    {}
  )
}

function eventsTo(target: readonly Progress[] = []): number {
  return lengthOf(rangeBetween(() => 0, target, Infinity))
}

/** `until` is as it was asked for. */
type End = { readonly until: string; readonly beforeMs?: number; readonly offset?: number }

function endOf(until: string): End {
  if (/^\d+$/.test(until)) return { until, offset: Number(until) }
  // Behind every instant that can be stored, too.
  const isFuture = /^\d{4,}-/.test(until) && Date.parse(until) > Date.now()
  // A day is its begin.
  const instant = /^\d{4}-\d{2}-\d{2}$/.test(until) ? `${until}T00:00:00Z` : until
  if (Instant.safeParse(instant).success && !isFuture) return { until, beforeMs: millisecondsOf(instant) }
  if (isFuture) {
    throw new RebuildRefused(
      `--until ${until} lies in the future; it is ${instantOf(Math.floor(Date.now() / 1000) * 1000)} now. Give an earlier instant, or leave it out to go to the end.`,
      { isUsage: true }
    )
  }
  throw new RebuildRefused(
    `--until takes an instant, such as 2026-03-14T20:00:00Z, or 2026-03-14 for the begin of that day, or an offset, such as 120000; got ${JSON.stringify(until)}.`,
    { isUsage: true }
  )
}

/** Where each topic's fill ends: where all of the unit's live tables have come to, or the offset before. */
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
      `--until ${end?.until} lies in the future: the live tables hold offsets up to ${most}. Give a lower one, or leave it out to go to the end.`,
      { isUsage: true }
    )
  }
  return target
}

/** Event tables as they were if nothing had happened from an instant on. */
async function createViews(
  tables: Tables,
  unit: readonly Projection[],
  id: number,
  beforeMs: number
): Promise<Record<string, string>> {
  const views: Record<string, string> = {}
  for (const table of new Set(unit.map(({ from }) => eventTableName(from)))) {
    const view = freshName(table, id)
    views[table] = view
    await tables.execute(
      `CREATE VIEW ${view} AS SELECT e.*, e.position, e.version FROM ${table} AS e
       WHERE e.observed_at < fromUnixTimestamp64Milli(toInt64(${beforeMs}), 'UTC')`
    )
  }
  return views
}
