import { errorMessage, pause, type Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { DamagedTable } from '../generations/damaged-tables.js'
import { Generations } from '../generations/generations.js'
import { importRetraction } from '../projections/import-retraction.js'
import { detachPart, readDamagedParts } from '../store/damage.js'
import { type Projection, tablesOf, withDependents } from '../store/projection.js'
import { beginRebuild } from './begin.js'
import { foreignStatementsIn, liveOf, type RebuildContext, waitingTables } from './context.js'
import { RebuildRefused, type RebuildStatus } from './contract.js'
import type { Fillers } from './fillers.js'
import { purposeOf } from './find-rebuild.js'
import { dropLeftovers } from './leftovers.js'
import type { OperationQueue } from './operation-queue.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { recordGone } from './reload.js'
import { restAfter } from './rest-after.js'
import { allows } from './states.js'
import { progressOf } from './status.js'
import { swap } from './swap.js'
import { type RebuildRequest, unitFor } from './unit.js'

const LOOK_MS = 100
/** Repairs of the same tables that may fail until the next start: a disk may be faulty. */
const ATTEMPTS = 2
const KEYS_LOST =
  'it is not loaded again, because PostgreSQL lacks keys (--accept-older). Restore a backup that has them'

/** A rebuild that was begun or continued; `repair`: for these damaged tables. */
type Begun = { readonly record: RebuildRecord; readonly repair?: Repair }

/** Rebuilds whose swap and end need no operator. */
export class AutomaticRebuilds {
  readonly #context: RebuildContext
  readonly #fillers: Fillers
  readonly #queue: OperationQueue
  /** Failed repairs of this process, by projection. */
  readonly #attempts = new Map<string, number>()

  constructor(context: RebuildContext, { fillers, queue }: { fillers: Fillers; queue: OperationQueue }) {
    this.#context = context
    this.#fillers = fillers
    this.#queue = queue
  }

  /**
   * Swaps a rebuild in when it is filled, and drops the former tables. Throws a {@link RebuildRefused} when it needs an
   * operator. Several processes may do so at once.
   */
  async complete(record: RebuildRecord, onProgress: (progress: RebuildStatus['progress']) => void): Promise<void> {
    const { store, signal } = this.#context
    this.#fillers.wake()
    try {
      for (;;) {
        signal.throwIfAborted()
        const now = (await readRebuilds(store)).find(({ id }) => id === record.id) ?? record
        if (now.state === 'filling') onProgress(await progressOf(this.#context, this.#fillers, now))
        else if (now.state === 'filled')
          await this.#whileStill(now, async () => {
            await recordGone(this.#context, now)
            await swap(this.#context, now, 'swapping')
          })
        // There is no way back to the former tables.
        else if (now.state === 'swapped')
          await this.#whileStill(now, async () => {
            await storeRebuild(store, now, { state: 'dropped' })
            await dropLeftovers(this.#context)
          })
        else if (now.state === 'dropped') break
        else if (now.state !== 'swapping') throw cannotEnd(now)
        await pause(LOOK_MS, signal)
      }
    } finally {
      // The end may be stored, also if it is not read again.
      this.#queue.dropLeftovers()
    }
  }

  /**
   * Rebuilds what an earlier version of the statements fills, and what is damaged, until the context's signal. Never
   * rejects.
   */
  async run(): Promise<void> {
    const { damaged, logger, signal } = this.#context
    let said = ''
    for (let failures = 1; !signal.aborted; failures += 1) {
      const seen = damaged.marks
      let begun: Begun | undefined
      try {
        begun = await this.#queue.run(async () => (await this.#begunRepair()) ?? (await this.#begunUpgrade()))
        if (begun === undefined) await damaged.marked(seen, signal)
        else await this.complete(begun.record, () => undefined)
        if (begun?.repair !== undefined)
          logger.warn({ tables: namesOf(begun.repair) }, 'the damaged tables are replaced')
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        const reason = errorMessage(error)
        if (reason !== said) logger.error({ reason }, 'tables cannot be rebuilt; retrying')
        said = reason
        if (begun?.repair !== undefined) await this.#count(begun.repair, begun.record, reason).catch(() => undefined)
        await restAfter(failures, signal)
      }
    }
  }

  /** Returns the next repair, unless it has failed twice; undefined if there is none. */
  async #begunRepair(): Promise<Begun | undefined> {
    const { damaged, projections, store, areKeysLost } = this.#context
    let failure: unknown
    for (const repair of repairsOf(projections, await damaged.inUse())) {
      const { request, unit, topic } = repair
      const isHeld = topic?.people !== undefined && (await areKeysLost())
      if (isHeld) this.#leave(repair, KEYS_LOST)
      const hasFailed = (this.#attempts.get(request.projection) ?? 0) >= ATTEMPTS
      if (isHeld || hasFailed) {
        if (isOfUndos(repair)) return undefined
        continue
      }
      try {
        const isSame = ({ state, isFromLog }: RebuildRecord) => state !== 'failed' && isFromLog === request.isFromLog
        const open = await this.#open(unit, isSame, 'tables that it reads or replaces are damaged')
        if (open !== undefined) return { record: open, repair }
        // What is left can be read: by samples, and where the log no longer has the events.
        const { names } = await liveOf(this.#context)
        for (const table of [...(topic === undefined ? [] : [eventTableName(topic)]), ...unit.flatMap(tablesOf)])
          for (const part of await store.do(readDamagedParts, names.get(table) ?? table))
            await store.do(detachPart, part)
        const record = await beginRebuild(this.#context, request)
        this.#leave(repair, null)
        return { record, repair }
      } catch (error) {
        this.#leave(repair, `its repair waits: ${errorMessage(error)}`)
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure
    return undefined
  }

  #leave({ damaged }: Repair, why: string | null): void {
    for (const { name } of damaged) this.#context.damaged.leave(name, why)
  }

  /** Counts a failed repair, unless an operator can continue it, and drops its tables. */
  async #count(repair: Repair, { id }: RebuildRecord, reason: string): Promise<void> {
    const { store, logger } = this.#context
    const { projection } = repair.request
    const record = (await readRebuilds(store)).find((each) => each.id === id)
    this.#leave(repair, reason)
    if (record?.state === 'paused') return
    const attempts = (this.#attempts.get(projection) ?? 0) + 1
    this.#attempts.set(projection, attempts)
    if (record !== undefined && allows(record, 'cancel'))
      await storeRebuild(store, record, { state: 'cancelled', reason })
    this.#queue.dropLeftovers()
    if (attempts < ATTEMPTS) return
    const sentence = `its repair failed twice (${reason}); repair the cause, such as the disk, and restart the service`
    this.#leave(repair, sentence)
    logger.error({ tables: namesOf(repair), reason }, 'the repair of damaged tables failed twice and is stopped')
  }

  /**
   * Returns the rebuild of all outdated projections; undefined if there are none. Begins it unless another process has
   * done so.
   */
  async #begunUpgrade(): Promise<Begun | undefined> {
    const { store, projections, damaged, logger } = this.#context
    const { idle } = await new Generations(store, projections, (name) => damaged.has(name)).current()
    const outdated = [...idle].filter(([, { state }]) => state === 'outdated').map(([{ name }]) => name)
    const [projection, ...others] = outdated
    if (projection === undefined) return undefined
    const unit = withDependents(projections, new Set(outdated))
    const open = await this.#open(unit, () => true, 'its tables are rebuilt for another version of the program')
    if (open !== undefined) return { record: open }
    const request = { projection, others, until: null, isFromLog: false, retracts: null, isAutomatic: true }
    const record = await beginRebuild(this.#context, request)
    logger.info({ projections: record.unit }, 'an earlier version of the program filled these tables; they are rebuilt')
    return { record }
  }

  /**
   * Returns the automatic rebuild with some of these projections that is still wanted. Cancels the others, except a
   * newer program's: until the swap no data comes.
   */
  async #open(
    unit: readonly Projection[],
    isWanted: (record: RebuildRecord) => boolean,
    reason: string
  ): Promise<RebuildRecord | undefined> {
    const { store, damaged } = this.#context
    for (const record of await readRebuilds(store)) {
      if (!allows(record, 'cancel') || !unit.some(({ name }) => record.unit.includes(name))) continue
      const foreign = await foreignStatementsIn(this.#context, record)
      const isSound = !Object.values(waitingTables(record)).some((name) => damaged.has(name))
      if (foreign === undefined && record.isAutomatic && isSound && isWanted(record)) return record
      if (foreign?.isOutdated !== false)
        await storeRebuild(store, record, { state: 'cancelled', reason: foreign?.reason ?? reason })
    }
    return undefined
  }

  /** Runs work on a rebuild in the queue, unless its state has changed. */
  async #whileStill(record: RebuildRecord, work: () => Promise<unknown>): Promise<void> {
    await this.#queue.run(async () => {
      const now = (await readRebuilds(this.#context.store)).find(({ id }) => id === record.id)
      if (now?.state === record.state) await work()
    })
  }
}

const namesOf = ({ damaged }: Repair): string[] => damaged.map(({ table }) => table)

function cannotEnd(record: RebuildRecord): RebuildRefused {
  const { id, projection, state, reason } = record
  const why = reason === null ? '' : ` (${reason})`
  const way = state === 'cancelled' ? '' : ` gamenet rebuild resume ${projection} continues it.`
  return new RebuildRefused(`Rebuild ${id}, which ${purposeOf(record)}, is ${state}${why}.${way}`)
}

/*
 * repair   an automatic rebuild that replaces damaged tables: a read table is computed from its event table again, an
 *          event table is loaded from the log, with all that the log no longer has from the parts that can be read
 */

export type Repair = {
  readonly request: RebuildRequest
  readonly unit: readonly Projection[]
  /** The topic that it loads from the log. */
  readonly topic: Topic | undefined
  /** The tables that it replaces. */
  readonly damaged: readonly DamagedTable[]
}

/**
 * Returns the repairs of damaged tables, in order: what is undone is known before anything else is loaded again, and
 * event tables before the read tables that are computed from them.
 */
export function repairsOf(projections: readonly Projection[], damaged: readonly DamagedTable[]): Repair[] {
  const repairs: Repair[] = []
  const add = ({ name, from }: Projection, isFromLog: boolean) => {
    const request = { projection: name, until: null, isFromLog, retracts: null, isAutomatic: true }
    const unit = unitFor(projections, request)
    const tables = [...(isFromLog ? [eventTableName(from)] : []), ...unit.flatMap(tablesOf)]
    const replaced = damaged.filter(({ table }) => tables.includes(table))
    if (replaced.length > 0 && !replaced.every((each) => repairs.some((other) => other.damaged.includes(each))))
      repairs.push({ request, unit, topic: isFromLog ? from : undefined, damaged: replaced })
  }
  const isDamaged = (table: string) => damaged.some((each) => each.table === table)
  for (const each of projections) if (isDamaged(eventTableName(each.from))) add(each, true)
  for (const each of projections) if (tablesOf(each).some(isDamaged)) add(each, false)
  return repairs.toSorted((a, b) => Number(isOfUndos(b)) - Number(isOfUndos(a)))
}

/** Whether a repair restores which imports are undone: until then, a load from the log brings their events back. */
export function isOfUndos({ unit }: Pick<Repair, 'unit'>): boolean {
  return unit.some(({ name }) => name === importRetraction.name)
}
