import { LeaderboardId, projectionCheckpoint, rangeBetween, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { eventTableName } from '../events/event-table.js'
import { Generations, ownerOf } from '../generations/generations.js'
import { asStep, runStep } from '../project/run-step.js'
import { Checkpoints, storeCheckpoints } from '../store/checkpoint.js'
import { countDifferences, readShape } from '../store/comparison.js'
import { copyConsumed } from '../store/late-batch.js'
import { deleteOfKey, hasKey } from '../store/one-key.js'
import { type KeyCondition, keyColumnsOf, type Projection, tablesOf } from '../store/projection.js'
import { createTable, emptyTable } from '../store/table.js'
import { requireNoConcurrentRebuild, reserveNumber, storeNewRecord } from './begin.js'
import {
  type Live,
  liveOf,
  type RebuildContext,
  stepContextOf,
  unitOf,
  waitingNames,
  waitingTables
} from './context.js'
import { RebuildRefused } from './contract.js'
import { freeSpaceFor } from './free-space.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { linkParts } from './rebuild-tables.js'
import { approach, atRest, catchUpOnce, requireUnmoved, swap } from './swap.js'
import { ALL, type RebuildRequest, unitFor } from './unit.js'
import { comparedOf } from './verify.js'

/*
 * A rebuild of one key fills no tables. Its generation is a clone of the one that steps write: parts are linked, not
 * copied. There the rows of the key are deleted and computed again from all its events; then it is swapped in like any
 * other. So every row that passes store has its usual version, an interrupted one leaves what any rebuild leaves, and
 * one that was interrupted before its swap begins again with another clone.
 */

type OneKeyRequest = RebuildRequest & { readonly key: string }

/** Begins a rebuild of one key. Throws a {@link RebuildRefused} if the projection or the tables have no such key. */
export async function beginOneKey(context: RebuildContext, request: OneKeyRequest): Promise<RebuildRecord> {
  const { store, projections, reservedBytes } = context
  if (request.projection === ALL)
    throw new RebuildRefused('A key is one of a projection: give a projection instead of all.', { isUsage: true })
  if (request.until !== null || request.isFromLog || request.rate !== undefined)
    throw new RebuildRefused(
      '--key cannot be combined with --until, --recorded-until, --from-log or --rate. Omit these.',
      {
        isUsage: true
      }
    )
  const unit = unitFor(projections, request)
  keyOf(unit, { name: request.projection }, request.key)
  await requireNoConcurrentRebuild(context, request)
  await requireRunning(context, unit)
  const { obstacles } = await freeSpaceFor(store, 0, reservedBytes)
  if (obstacles.length > 0) throw new RebuildRefused(obstacles.join(' '))
  const key = await knownKeyOf(context, unit, { name: request.projection }, request.key)
  return await context.steps.exclusive(async (check) => {
    await requireNoConcurrentRebuild(context, request)
    const id = await reserveNumber(context, unit)
    await check()
    const nothing = { helpers: {}, target: {}, events: {}, cuts: {}, costs: {} }
    return await storeNewRecord(
      store,
      { ...request, key: key.text },
      { id, unit, owners: unit.map(ownerOf), ...nothing }
    )
  })
}

/** Corrects the key of a rebuild and swaps it in. Begins again if other tables were swapped in meanwhile. */
export async function correctKey(context: RebuildContext, { id }: RebuildRecord): Promise<void> {
  const record = (await readRebuilds(context.store)).find((each) => each.id === id)
  if (record?.state !== 'filling' || record.key === null) return
  const unit = unitOf(context, record)
  const { condition } = keyOf(unit, { name: record.projection }, record.key)
  await requireRunning(context, unit)
  const live = await cloneLive(context, record)
  await computeKey(context, record, { live, condition })
  await approach(context, record)
  const differences = await atRest(context, record, async (check) => {
    await catchUpOnce(context, record)
    const count = await countDifferent(live, unit, { fresh: waitingTables(record), condition })
    await check()
    return count
  })
  const verification = { verifiedAt: new Date().toISOString(), isEqual: differences === 0, differences }
  const verified = await storeRebuild(context.store, record, { verification }, 'fill')
  // Damage that was found meanwhile is in the clone too.
  await requireRunning(context, unit)
  await swap(context, verified, 'swapping', live.pointers)
}

/**
 * Clones the tables that steps write, with their checkpoints, while no pass and no erasure runs and no pointer moves.
 * Their positions never fall, so the checkpoints of an earlier attempt are not above these.
 */
async function cloneLive(context: RebuildContext, record: RebuildRecord): Promise<Live> {
  const clone = async (): Promise<Live> => {
    const live = await liveOf(context)
    requireUnmoved(record, live.pointers, live.pointers)
    const store = context.store.with({ names: waitingNames(record) })
    const tables = Object.entries(waitingTables(record)).map(([table, name]) => {
      return [live.names.get(table) ?? table, name] as const
    })
    for (const [source, name] of tables) {
      await store.do(createTable, name, source)
      await store.do(emptyTable, name)
    }
    // Before the rows: what is above a checkpoint is only computed twice.
    const consumers = record.unit.map(projectionCheckpoint)
    const checkpoints = await Checkpoints.read(live.store)
    await store.do(
      storeCheckpoints,
      consumers.flatMap((name) => checkpoints.of(name).map((each) => ({ name, ...each })))
    )
    await store.do(copyConsumed, live.names, consumers)
    await linkParts(store, new Map(tables))
    return live
  }
  return await atRest(context, record, async (check) => {
    const live = await context.steps.shared(clone)
    await check()
    return live
  })
}

/** Deletes the rows of a key from the clone, and computes them from all events of the key, in the order of the fill. */
async function computeKey(
  context: RebuildContext,
  record: RebuildRecord,
  { live, condition }: { readonly live: Live; readonly condition: KeyCondition }
): Promise<void> {
  const { signal } = context
  const step = stepContextOf(context, record, live)
  const within = { ...step, store: step.store.with({ signal }) }
  const unit = unitOf(context, record)
  await asStep(step, async () => {
    await Promise.all(unit.flatMap(tablesOf).map((table) => within.store.do(deleteOfKey, table, condition)))
  })
  const checkpoints = await Checkpoints.read(step.store)
  for (const projection of unit) {
    signal.throwIfAborted()
    const range = rangeBetween(() => 0, checkpoints.of(projectionCheckpoint(projection.name)), Infinity)
    if (range.length > 0) await runStep(within, projection, { range, isLate: false, key: condition })
  }
}

/**
 * Counts the rows of a key that differ between the tables that steps write and their clone, in the tables that are in
 * the order of the key. Others are read as a whole, and contain what these do in other orders, or its sums.
 */
async function countDifferent(
  { store, names }: Live,
  unit: readonly Projection[],
  { fresh, condition }: { readonly fresh: Readonly<Record<string, string>>; readonly condition: KeyCondition }
): Promise<number> {
  const columns = unit.slice(0, 1).flatMap(keyColumnsOf)
  let count = 0
  for (const { table, leftOut } of comparedOf(unit)) {
    const [liveTable, freshTable] = [names.get(table) ?? table, fresh[table] ?? table]
    const shape = await store.do(readShape, freshTable)
    if (shape.key.slice(0, columns.length).join() !== columns.join()) continue
    const like = { shape, leftOut, buckets: 1, key: condition }
    const sides = { live: { table: liveTable, ...like }, fresh: { table: freshTable, ...like } }
    count += await store.do(countDifferences, sides, [0])
  }
  return count
}

/** Throws a {@link RebuildRefused} if some of these projections do not run: their tables are rebuilt as a whole. */
export async function requireRunning(
  context: RebuildContext,
  unit: readonly Projection[],
  so = 'so its tables are rebuilt as a whole'
): Promise<void> {
  const { store, projections, damaged } = context
  const { idle } = await new Generations(store, projections, (name) => damaged.has(name)).current()
  for (const each of unit) {
    const found = idle.get(each)
    if (found === undefined) continue
    throw new RebuildRefused(
      `Projection ${each.name} is ${found.state} (${found.reason}), ${so}. Repeat it when gamenet status reports ` +
        'the projection as running.'
    )
  }
}

/**
 * Returns a key of a projection. Throws a {@link RebuildRefused} unless there is an event of it, or a row in a table
 * that the unit writes.
 */
export async function knownKeyOf(
  context: RebuildContext,
  unit: readonly Projection[],
  projection: Pick<Projection, 'name'>,
  given: string
): Promise<Key> {
  const key = keyOf(unit, projection, given)
  const { store } = await liveOf(context)
  const tables = [...new Set([...unit.map(({ from }) => eventTableName(from)), ...unit.flatMap(tablesOf)])]
  for (const table of tables) if (await store.do(hasKey, table, key.condition)) return key
  throw new RebuildRefused(`There is no event and no row of ${key.text} in ${tables.join(', ')}.`, { isUsage: true })
}

type Key = { readonly text: string; readonly condition: KeyCondition }

/** The parts of keys, by column: how an operator writes them. */
const PARTS: Readonly<Record<string, { readonly as: string; readonly like: string; readonly schema: z.ZodType }>> = {
  title_id: { as: '<title>', like: '4d530064', schema: TitleId },
  leaderboard_id: { as: '<board>', like: '1', schema: z.string().regex(/^\d+$/).transform(Number).pipe(LeaderboardId) }
}

/** Returns the key of a unit's rows. Throws a {@link RebuildRefused} if these have none, or other ones. */
function keyOf(unit: readonly Projection[], { name }: Pick<Projection, 'name'>, text: string): Key {
  const [columns = [], ...others] = unit.map(keyColumnsOf)
  const parts = columns.flatMap((column) => PARTS[column] ?? [])
  const isOfOneKey = others.every((each) => each.join() === columns.join())
  if (parts.length === 0 || parts.length < columns.length || !isOfOneKey)
    throw new RebuildRefused(
      `Rows of ${unit.map((each) => each.name).join(', ')} cannot be corrected by a title or a board. Rebuild ` +
        `them as a whole: gamenet rebuild start ${name}.`,
      { isUsage: true }
    )
  const given = text.split('/')
  const read = parts.map(({ schema }, n) => schema.safeParse(given[n]))
  if (given.length !== parts.length || read.some(({ success }) => !success)) {
    const [form, example] = [parts.map(({ as }) => as).join('/'), parts.map(({ like }) => like).join('/')]
    throw new RebuildRefused(`A key of ${name} is ${form}, such as ${example}; got ${JSON.stringify(text)}.`, {
      isUsage: true
    })
  }
  // A mutation stays in the table's files and accepts no parameters; these are digits only, decimal or hexadecimal.
  const values = read.map(({ data }) => data)
  return {
    text: values.join('/'),
    condition: (prefix) =>
      columns
        .map((column, n) => `${prefix}${column} = ${typeof values[n] === 'number' ? values[n] : `'${values[n]}'`}`)
        .join(' AND ')
  }
}
