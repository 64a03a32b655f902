import { type ClickHouse, ClickHouseError } from '@gamenet/engines'
import {
  beginRepair,
  cancelRebuilds,
  changedDefinitions,
  dataTables,
  dropLostParts,
  findLostParts,
  incompleteTableIn,
  type MissingEvents,
  type NamedLostPart,
  type Projector,
  projections,
  readMissingEvents,
  repairOf,
  type Store,
  type Target
} from '@gamenet/projector'
import { type PartitionExtent, pause, Refusal, topics, withTimeout } from '@gamenet/schemas'
import type { Logger } from 'pino'
import { Gauge, type Registry } from 'prom-client'
import { isOfDamage, MISFIT_CODES, NOT_ENOUGH_SPACE } from './engine-failures.js'
import type { Engines } from './engines.js'

/** A table that lost rows, for status. */
export type LostTable = {
  readonly table: string
  readonly parts: number
  /** `repairing`: its rows are being restored. `left`: an operator must decide. */
  readonly state: 'repairing' | 'left'
  readonly reason: string
}

/** Tables that lost rows with unreadable parts, and the restoration of these rows. */
export type LostRows = {
  /**
   * Wraps readers to refuse tables that are being restored: an answer without the lost rows would be wrong, and so
   * would a scrape's comparison.
   */
  guarded(readers: ClickHouse['readers']): Pick<ClickHouse['readers'], 'rows' | 'json' | 'stream'>
  /**
   * Completes the repair in the background after the projector has started.
   */
  finish(projector: Pick<Projector, 'caughtUp'>): void
  /** Resolves with true when no table lacks rows; with false when the service stops first or a later start repairs. */
  whenRepaired(): Promise<boolean>
  status(): Promise<LostTable[]>
  /**
   * The parts that tables lacked when this process opened them; a stopped service may have restored their rows since.
   */
  readonly found: readonly NamedLostPart[]
  /** Returns the tables whose rows are missing until a repair has ended. */
  repairing(): readonly string[]
  stop(): Promise<void>
}

/**
 * Which process restores lost rows. `now`: this process, which has exclusive use of the tables and a projector.
 * `later`: such a process at its start. `never`: an operator, because others load and project into the tables of a
 * ClickHouse server meanwhile.
 */
export type RepairTime = 'now' | 'later' | 'never'

const RETRY_AFTER_SECONDS = 30
const AGAIN_MS = 5000
const EXTENTS_MS = 5000

/**
 * Finds detached parts, and starts to restore their rows. To be called before anything loads, projects or reads.
 */
export async function openLostRows({
  engines: { store, log, names },
  repairs,
  areKeysLost = async () => false,
  registry,
  logger
}: {
  readonly engines: Pick<Engines, 'store' | 'log' | 'names'>
  readonly repairs: RepairTime
  /**
   * Whether keys of people are lost: then nothing about people is loaded again by itself, because a missing key reads
   * as an erasure.
   */
  readonly areKeysLost?: () => Promise<boolean>
  readonly registry: Registry
  readonly logger: Logger
}): Promise<LostRows> {
  const stopping = new AbortController()
  const isOurs = repairs !== 'never'
  const found = await findLostParts(store).catch((error: unknown) => {
    if (error instanceof Refusal) return []
    throw error
  })
  const repair = repairOf(projections, isOurs ? tablesOf(found) : new Set())
  const ours = isOurs ? found.filter(({ table }) => isRepaired(table)) : []
  const isHeld = repair.topics.some(({ people }) => people !== undefined) && (await areKeysLost())
  const [repairing, detached] = [new Set(tablesOf(ours)), new Set(tablesOf(ours))]
  let incomplete: ReadonlySet<string> = new Set()
  let targets: readonly Target[] | undefined
  if (isOurs && found.length > 0) {
    incomplete = repair.incomplete
    const cancelled = await cancelRebuilds(store, repair)
    if (cancelled.length > 0)
      logger.warn({ rebuilds: cancelled }, 'rebuilds that would lack the lost rows are cancelled')
    const extents = repairs === 'now' ? await extentsOf(log) : new Map<string, readonly PartitionExtent[]>()
    // Events that the log no longer has must be known first.
    const needed = repair.positionsAreLost ? topics : repair.topics
    if (repairs === 'now' && !isHeld && needed.every(({ name }) => extents.has(name)))
      targets = await beginRepair(store, projections, repair, extents)
  }
  const dropped = isOurs
    ? (await readMissingEvents(store)).map((each) => unrecoverableTable(each, names.log ?? 'the log'))
    : []
  const wayOf = (table: string): Way => {
    if (!isOurs) return 'operator'
    if (isHeld) return 'backup'
    return targets !== undefined && detached.has(table) ? 'now' : 'next start'
  }
  const lost = lossesOf(found, repair.lasting, wayOf)
  // All tables of a deleted folder have the same consequence.
  for (const consequence of new Set(lost.map((each) => each.consequence))) {
    const same = lost.filter((each) => each.consequence === consequence)
    logger.error({ tables: same.map(({ table }) => table) }, sentenceOf(same))
  }
  for (const { table, reason } of dropped) logger.error({ table }, reason)
  addMetric(registry, store, dropped)
  const refuse = (sql: string): void => {
    const table = incompleteTableIn(sql, incomplete)
    if (table === undefined) return
    throw new Refusal('table_incomplete', [table], { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
  let repaired = Promise.resolve(repairing.size === 0)
  let finishing: Promise<unknown> = Promise.resolve()
  const untilDone = (work: () => Promise<void>, failed: string) => tryUntilDone(work, failed, stopping.signal, logger)
  return {
    guarded: (readers) => guarded(readers, refuse, isOurs),
    finish: (projector) => {
      if (targets === undefined) return
      const options = { targets, signal: stopping.signal }
      const catchUp = () => projector.caughtUp(options)
      repaired = untilDone(catchUp, 'lost rows are not restored yet').then((isDone) => {
        if (!isDone) return false
        incomplete = new Set()
        repairing.clear()
        if (ours.length > 0) logger.warn({ tables: [...tablesOf(ours)] }, 'the lost rows are restored')
        return true
      })
      finishing = repaired.then(async (isDone) => {
        if (!isDone) return
        const failed = 'detached parts cannot be dropped yet'
        if (await untilDone(() => dropAgain(store, ours), failed)) detached.clear()
      })
    },
    whenRepaired: () => repaired,
    found,
    repairing: () => [...repairing],
    status: async () => {
      const now = await findLostParts(store)
      const tablesNow = lossesOf(now, repair.lasting, wayOf).map((each): LostTable => {
        const { table, parts } = each
        return { table, parts, state: wayOf(table) === 'now' ? 'repairing' : 'left', reason: sentenceOf([each]) }
      })
      return [...tablesNow, ...dropped]
    },
    stop: async () => {
      stopping.abort()
      await finishing
    }
  }
}

function guarded({ rows, json, stream }: ClickHouse['readers'], refuse: (sql: string) => void, isOurs: boolean) {
  const guard =
    <Rest extends unknown[], Answer>(read: (sql: string, ...rest: Rest) => Promise<Answer>) =>
    async (sql: string, ...rest: Rest): Promise<Answer> => {
      refuse(sql)
      return await read(sql, ...rest).catch((error) => refuseUnreadable(error, isOurs ? { rows } : undefined))
    }
  return { rows: guard(rows), json: guard(json), stream: guard(stream) }
}

/** `definedByUs`: the tables, if only this program defines them; then a definition that differs from it is damaged. */
async function refuseUnreadable(
  error: unknown,
  definedByUs: Pick<ClickHouse['readers'], 'rows'> | undefined
): Promise<never> {
  if (!(error instanceof ClickHouseError) || error.code === undefined) throw error
  const options = { retryAfterSeconds: RETRY_AFTER_SECONDS, cause: error }
  if (error.code === NOT_ENOUGH_SPACE) throw new Refusal('disk_full', [], options)
  const isMisfit = definedByUs !== undefined && MISFIT_CODES.has(error.code)
  const isDamaged = isOfDamage(error) || (isMisfit && (await changedDefinitions(definedByUs)).length > 0)
  throw isDamaged ? new Refusal('data_damaged', [], options) : error
}

/** Drops these parts if they are still detached. */
async function dropAgain(store: Store, parts: readonly NamedLostPart[]): Promise<void> {
  const isOne = (each: NamedLostPart) => parts.some(({ table, part }) => table === each.table && part === each.part)
  await dropLostParts(store, (await findLostParts(store)).filter(isOne))
}

function unrecoverableTable({ table, topic, epoch, partition, next }: MissingEvents, log: string): LostTable {
  const reason =
    `Rows of ${table} were lost, and ${log} has ${topic}, epoch ${epoch}, partition ${partition}, only from offset ${next} on: ` +
    'rows of earlier events stay lost. Restore a backup that contains them.'
  return { table, parts: 0, state: 'left', reason }
}

/** Retries failures until done; false if the service was stopped first. */
async function tryUntilDone(
  work: () => Promise<void>,
  failed: string,
  signal: AbortSignal,
  logger: Logger
): Promise<boolean> {
  while (!signal.aborted) {
    try {
      await work()
      return true
    } catch (error) {
      if (signal.aborted) break
      logger.warn({ err: error }, failed)
      await pause(AGAIN_MS, signal)
    }
  }
  return false
}

/** Returns whether a table is repaired; a generation that neither steps write nor answers read is not. */
function isRepaired(table: string): boolean {
  return !table.includes('__')
}

function tablesOf(parts: readonly NamedLostPart[]): ReadonlySet<string> {
  return new Set(parts.map(({ table }) => table))
}

type Way = 'now' | 'next start' | 'backup' | 'operator'

/** `consequence`: the end of the message. */
type Loss = { readonly table: string; readonly parts: number; readonly consequence: string }

/** Returns the loss of each table. */
function lossesOf(
  parts: readonly NamedLostPart[],
  lasting: ReadonlyMap<string, string>,
  wayOf: (table: string) => Way
): readonly Loss[] {
  return [...tablesOf(parts)].map((table) => {
    const own = parts.filter((each) => each.table === table)
    const lost = lasting.get(table)
    const consequence = lost === undefined ? wayOut(wayOf(table), own[0]?.engineTable ?? table) : `: ${lost}.`
    return { table, parts: own.length, consequence }
  })
}

function wayOut(way: Way, engineTable: string): string {
  if (way === 'now') return '; they are being restored from the log.'
  if (way === 'backup')
    return (
      '; they are not loaded again, because PostgreSQL lacks keys (--accept-older). Restore a backup that ' +
      'has them.'
    )
  if (way === 'next start') return '; the next gamenet start that reaches the log restores them.'
  return (
    '. Rebuild the tables derived from it (gamenet rebuild, with --from-log for a table event_*), and drop the parts: ' +
    `ALTER TABLE ${engineTable} DROP DETACHED PARTITION ALL SETTINGS allow_drop_detached = 1`
  )
}

/** Returns the message about tables with the same consequence. */
function sentenceOf(losses: readonly Loss[]): string {
  const [{ table = '', consequence = '' } = {}] = losses
  const count = losses.reduce((sum, { parts }) => sum + parts, 0)
  const where = losses.length === 1 ? table : `${losses.length} tables`
  return `${count} parts of ${where} were missing or unreadable at the start, so rows are missing${consequence}`
}

/** Returns the extents of the log's topics, without those that did not answer in time. */
async function extentsOf(log: Engines['log']): Promise<ReadonlyMap<string, readonly PartitionExtent[]>> {
  const extents = new Map<string, readonly PartitionExtent[]>()
  const reads = topics.map(async ({ name }) => {
    extents.set(name, await log.extents(name))
  })
  await withTimeout(Promise.allSettled(reads), EXTENTS_MS, () => undefined)
  return new Map(extents)
}

function addMetric(registry: Registry, store: Store, dropped: readonly LostTable[]): void {
  const gauge = new Gauge({
    name: 'gamenet_lost_parts',
    help: 'Alarm: parts of tables that were unreadable at a start, whose rows are missing until they are restored; and partitions whose lost rows the log no longer has',
    labelNames: ['table'],
    registers: [registry],
    async collect() {
      // Other metrics show whether the tables are unavailable.
      const parts = await findLostParts(store).catch(() => undefined)
      if (parts === undefined) return
      gauge.reset()
      for (const table of [...dataTables, ...tablesOf(parts)])
        gauge.set({ table }, [...parts, ...dropped].filter((each) => each.table === table).length)
    }
  })
}
