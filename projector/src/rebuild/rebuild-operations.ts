import { randomUUID } from 'node:crypto'
import { loadCheckpoint, projectionCheckpoint, type ServingTables, type Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { PassLock } from '../generations/pass-lock.js'
import { Checkpoints } from '../store/checkpoint.js'
import { readPointers } from '../store/generation.js'
import type { Store, TableNames } from '../store/operation.js'
import { type Projection, withSources } from '../store/projection.js'
import { AutomaticRebuilds } from './automatic.js'
import { beginRebuild, optionOf, planFor } from './begin.js'
import {
  liveOf,
  type RebuildContext,
  reloadedTopic,
  requireOwnStatements,
  unitOf,
  waitingNames,
  waitingTables
} from './context.js'
import {
  type ComparedTables,
  type RebuildPlan,
  RebuildRefused,
  type RebuildStatus,
  type Rebuilds,
  type SwapDifference,
  type SwapReport,
  type VerifyReport
} from './contract.js'
import { STEP_SIZES, type StepSizes } from './fill.js'
import { Fillers } from './fillers.js'
import { purposeOf, rebuildSwapped, rebuildUnderWay, requireNoImportUndo } from './find-rebuild.js'
import { ImportUndo } from './import-undo.js'
import { dropLeftovers } from './leftovers.js'
import { beginOneKey, knownKeyOf, requireRunning } from './one-key.js'
import { OperationQueue } from './operation-queue.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { RebuildSteps } from './rebuild-steps.js'
import { cloneTables, copyName, dropTables } from './rebuild-tables.js'
import { requireAllowed } from './states.js'
import { statusOf } from './status.js'
import { approach, atRest, CATCH_UP_MS, catchUpOnce, completeSwap, isInterrupted, swap } from './swap.js'
import { differingSubjects, requirePreviewOf, unexpected } from './swap-difference.js'
import { type Compared, comparedOf, compareTables } from './verify.js'

/** Time for statements of answers that read the former generation when a swap ends. */
const LONGEST_ANSWER_MS = 60_000
/** Subjects that a refusal names. */
const NAMED_MAX = 3

/** The rebuilds of an installation, as one process runs them; operations run one after the other. */
export class RebuildOperations implements Rebuilds {
  readonly importUndos: ImportUndo
  readonly #context: RebuildContext
  readonly #fillers: Fillers
  readonly #queue: OperationQueue
  readonly #automatic: AutomaticRebuilds
  #rebuilt: Promise<void> = Promise.resolve()

  constructor(
    needs: Omit<RebuildContext, 'process' | 'sizes' | 'steps' | 'longestAnswerMs' | 'catchUpMs'> & {
      /** A lock that steps of rebuilds of all processes share. */
      readonly rebuildLock: PassLock
      readonly process?: string
      readonly sizes?: StepSizes
      readonly longestAnswerMs?: number | undefined
      readonly catchUpMs?: number | undefined
    }
  ) {
    const { process = randomUUID(), sizes = STEP_SIZES, rebuildLock, ...rest } = needs
    const { longestAnswerMs = LONGEST_ANSWER_MS, catchUpMs = CATCH_UP_MS } = needs
    this.#context = { ...rest, steps: new RebuildSteps(rebuildLock), process, sizes, longestAnswerMs, catchUpMs }
    this.#fillers = new Fillers(this.#context, {
      completeSwap: (id) => this.#completeSwap(id),
      dropLeftovers: () => this.#queue.dropLeftovers()
    })
    this.#queue = new OperationQueue(this.#context, this.#fillers)
    this.#automatic = new AutomaticRebuilds(this.#context, { fillers: this.#fillers, queue: this.#queue })
    this.importUndos = new ImportUndo(this.#context, { automatic: this.#automatic, queue: this.#queue })
  }

  /**
   * Continues the fills of an earlier process, drops its leftovers, and rebuilds what an earlier version has filled and
   * what is damaged.
   */
  open(): void {
    this.#fillers.start()
    this.#queue.dropLeftovers()
    this.#rebuilt = this.#automatic.run()
  }

  /** Resolves when nothing is written any more; call it after the context's signal. */
  async closed(): Promise<void> {
    await this.#rebuilt
    await this.#queue.ended()
    await this.#fillers.allEnded()
    await this.#context.folding.close()
  }

  /**
   * Runs work that stores events as a step of a rebuild: {@link stepsEnded} waits for it, and an event table is swapped
   * before or after it. Rejects if that is uncertain; then repeat it.
   */
  async inStep<Result>(step: () => Promise<Result>): Promise<Result> {
    return await this.#context.steps.shared(async (check) => {
      const result = await step()
      await check()
      return result
    })
  }

  /** Resolves when the steps of rebuilds that run now in any process have ended. */
  async stepsEnded(): Promise<void> {
    await this.#context.steps.ended()
  }

  async plan(projection: string, { isFromLog = false }: { readonly isFromLog?: boolean } = {}): Promise<RebuildPlan> {
    return await this.#queue.run(async () => {
      const request = { projection, until: null, isFromLog, retracts: null, isAutomatic: false }
      const { measured: _measured, ...plan } = await planFor(this.#context, request)
      return plan
    })
  }

  async start(
    projection: string,
    { until, recordedUntil, isFromLog = false, rate, key }: Parameters<Rebuilds['start']>[1] = {}
  ): Promise<RebuildStatus> {
    if (until !== undefined && recordedUntil !== undefined)
      throw new RebuildRefused('--until and --recorded-until cannot be combined. Give one of them.', { isUsage: true })
    return await this.#queue.run(async () => {
      const request = {
        ...{ projection, until: until ?? recordedUntil ?? null, isFromLog },
        isByRecording: recordedUntil !== undefined,
        ...(rate === undefined ? {} : { rate }),
        retracts: null,
        isAutomatic: false
      }
      const record = await (key === undefined
        ? beginRebuild(this.#context, request)
        : beginOneKey(this.#context, { ...request, key }))
      this.#fillers.wake()
      return await this.#statusOf(record)
    })
  }

  async list(): Promise<RebuildStatus[]> {
    const records = await readRebuilds(this.#context.store)
    return await Promise.all(records.map((record) => this.#statusOf(record)))
  }

  async pause(projection: string): Promise<RebuildStatus> {
    return await this.#queue.run(async () => {
      const record = await rebuildUnderWay(this.#context, projection)
      requireAllowed(record, 'pause', 'paused')
      const paused = await this.#store(record, { state: 'paused' })
      await this.#fillers.ended(record.id)
      return await this.#statusOf(paused)
    })
  }

  async rate(projection: string, rate: number): Promise<RebuildStatus> {
    return rate === 0 ? await this.pause(projection) : await this.#resume(projection, { rate })
  }

  async resume(projection: string): Promise<RebuildStatus> {
    return await this.#resume(projection)
  }

  async #resume(projection: string, change?: Pick<RebuildRecord, 'rate'>): Promise<RebuildStatus> {
    return await this.#queue.run(async () => {
      const record = await rebuildUnderWay(this.#context, projection)
      requireAllowed(record, 'resume', 'resumed')
      await requireOwnStatements(this.#context, record)
      // A rebuild in the state `filling` whose process has ended needs no new state, only a process that continues it.
      const isUnchanged = record.state === 'filling' && change === undefined
      const resumed = isUnchanged ? record : await this.#store(record, { state: 'filling', reason: null, ...change })
      this.#fillers.wake()
      return await this.#statusOf(resumed)
    })
  }

  async cancel(projection: string): Promise<RebuildStatus> {
    return await this.#queue.run(async () => {
      const record = await rebuildUnderWay(this.#context, projection)
      requireAllowed(record, 'cancel', 'cancelled')
      if (record.isAutomatic && record.state !== 'failed')
        throw new RebuildRefused(
          `Rebuild ${record.id} ${purposeOf(record)}. It completes by itself; it can be cancelled once it has failed.`
        )
      const ended = { state: 'cancelled', reason: null } as const
      // Stored at once, without waiting for the running step.
      const mayBeSwapping = record.state === 'filled' || record.key !== null
      const cancelled = await (mayBeSwapping ? this.#end(record, ended) : this.#store(record, ended))
      await this.#fillers.ended(record.id)
      await this.#dropLeftovers()
      return await this.#statusOf(cancelled)
    })
  }

  async verify(projection: string): Promise<VerifyReport> {
    return await this.#queue.run(async () => {
      const record = await rebuildUnderWay(this.#context, projection)
      requireAllowed(record, 'verify', 'verified')
      return await this.#atOnePosition(record, async (store, tables, loaded) => {
        const topic = reloadedTopic(record)
        const ofEvents = topic === undefined ? [] : [eventsOf(topic, loaded)]
        const compared = comparedOf(unitOf(this.#context, record))
        const report = await compareTables(store, [...ofEvents, ...compared], tables)
        const differences = report.tables.reduce((sum, { differences: each }) => sum + each, 0)
        const isEqual = report.tables.every(({ differentBuckets }) => differentBuckets === 0)
        const verifiedAt = new Date().toISOString()
        await this.#store(record, { verification: { verifiedAt, isEqual, differences } })
        return { id: record.id, until: record.until, isEqual, ...report }
      })
    })
  }

  async preview<Result>(
    projection: string,
    { key }: { readonly key?: string },
    use: (difference: SwapDifference, tables: ComparedTables) => Promise<Result>
  ): Promise<Result> {
    return await this.#queue.run(async () => {
      const record = await rebuildUnderWay(this.#context, projection)
      const unit = await requirePreviewable(this.#context, record)
      const only = key === undefined ? undefined : await knownKeyOf(this.#context, unit, { name: projection }, key)
      return await this.#atOnePosition(record, async (store, { live, fresh, signal }, loaded) => {
        const { id, startedAt } = record
        const difference: SwapDifference = {
          rebuild: { id, projection, startedAt },
          key: only?.text ?? null,
          comparedAt: new Date().toISOString(),
          position: Object.fromEntries(
            unit.map(({ name, from }) => [from.name, [...loaded.of(projectionCheckpoint(name))]])
          ),
          ...(await differingSubjects(store, unit, { live, fresh, key: only?.condition, signal }))
        }
        const { serving } = await store.do(readPointers)
        return await use(difference, { live: servingWith(serving, live, fresh), fresh: servingWith(serving, fresh) })
      })
    })
  }

  async #requireExpected(record: RebuildRecord, expected: SwapDifference): Promise<void> {
    requirePreviewOf(record, expected)
    const unit = await requirePreviewable(this.#context, record)
    const { id, projection } = record
    const found = await this.#atOnePosition(record, async (store, tables) => {
      const now = await differingSubjects(store, unit, { ...tables, key: undefined })
      if (now.subjects.length < now.subjectCount) return now.subjects
      return await unexpected(store, unit, now, expected)
    })
    if (found.length === 0) return
    const named = found.slice(0, NAMED_MAX).map(({ table, key }) => `${table} ${JSON.stringify(key)}`)
    throw new RebuildRefused(
      `Rows of ${found.length} subjects differ that the preview of rebuild ${id} does not show so, and no event is ` +
        `newer than it: ${named.join(', ')}. Preview it again: gamenet rebuild preview ${projection} --json.`
    )
  }

  /** Runs a comparison of old and new tables at one position; later events enter neither copy. */
  async #atOnePosition<Result>(
    record: RebuildRecord,
    compare: (
      store: Store,
      tables: { readonly live: TableNames; readonly fresh: TableNames; readonly signal: AbortSignal },
      loaded: Checkpoints
    ) => Promise<Result>
  ): Promise<Result> {
    await requireOwnStatements(this.#context, record)
    const { store, projections, runner, signal } = this.#context
    const copies = new Map(Object.entries(waitingTables(record)).map(([table, fresh]) => [table, copyName(fresh)]))
    if (record.until === null) await approach(this.#context, record)
    try {
      const loaded = await atRest(this.#context, record, async (check) => {
        if (record.until === null) {
          const reads = withSources(projections, new Set(record.unit))
          await runner.stepOnce(new Set(reads.map(({ name }) => name)), check)
          await catchUpOnce(this.#context, record)
        }
        const live = await liveOf(this.#context)
        await cloneTables(store, new Map([...copies].map(([table, copy]) => [live.names.get(table) ?? table, copy])))
        const checkpoints = await Checkpoints.read(live.store)
        await check()
        return checkpoints
      })
      const live = await liveOf(this.#context)
      return await compare(live.store, { live: copies, fresh: waitingNames(record), signal }, loaded)
    } finally {
      await dropTables(store, copies.values())
    }
  }

  async swap(
    projection: string,
    { acceptDifferences = false, expected }: NonNullable<Parameters<Rebuilds['swap']>[1]> = {}
  ): Promise<SwapReport> {
    return await this.#queue.run(async () => {
      const record = await rebuildUnderWay(this.#context, projection)
      requireAllowed(record, 'swap', 'swapped in')
      const { verification, until, isByRecording } = record
      const name = record.projection
      if (until !== null)
        throw new RebuildRefused(
          `Rebuild ${record.id} ends at ${until} and is for inspection only. Start one without ` +
            `${optionOf(isByRecording)} to swap it in.`
        )
      if (expected !== undefined) {
        await this.#requireExpected(record, expected)
        return await this.#swap(record, 'swapping')
      }
      if (verification === null)
        throw new RebuildRefused(
          `Rebuild ${record.id} was not verified against the tables that serve now. Run: gamenet rebuild verify ` +
            `${name}.`
        )
      if (!verification.isEqual && !acceptDifferences)
        throw new RebuildRefused(
          `Rebuild ${record.id} differs from the tables that serve in ${verification.differences} rows. Look at ` +
            `them by gamenet rebuild verify ${name}; swap them in by --accept-differences, or gamenet rebuild ` +
            `cancel ${name}.`
        )
      return await this.#swap(record, 'swapping')
    })
  }

  async rollback(projection: string): Promise<SwapReport> {
    return await this.#queue.run(async () => {
      const record = await rebuildSwapped(this.#context, projection)
      if (record.retracts !== null)
        throw new RebuildRefused(
          `Rebuild ${record.id} undid import ${record.retracts}, which the former tables contain, so it cannot be ` +
            'rolled back. Import the file again if its events are wanted.'
        )
      await requireNoImportUndo(this.#context, record)
      return await this.#swap(record, 'rolling-back')
    })
  }

  async drop(projection: string): Promise<RebuildStatus> {
    return await this.#queue.run(async () => {
      const record = await rebuildSwapped(this.#context, projection)
      const dropped = await this.#end(record, { state: 'dropped' })
      await this.#dropLeftovers()
      return await this.#statusOf(dropped)
    })
  }

  async #swap(record: RebuildRecord, state: 'swapping' | 'rolling-back'): Promise<SwapReport> {
    const report = await swap(this.#context, record, state)
    if (report !== undefined) {
      await this.#dropLeftovers()
      return report
    }
    throw takenFurther(record)
  }

  /**
   * Stores the end of a rebuild, whose tables are dropped next; never while its swap begins, after which pointers name
   * them.
   */
  async #end(record: RebuildRecord, change: Partial<RebuildRecord>): Promise<RebuildRecord> {
    return await this.#context.steps.exclusive(async (check) => {
      const newest = (await readRebuilds(this.#context.store)).find(({ id }) => id === record.id)
      if (newest?.version !== record.version) throw takenFurther(record)
      await check()
      return await this.#store(record, change)
    })
  }

  /** Completes a swap that was interrupted, unless another operation has done so. */
  async #completeSwap(id: number): Promise<void> {
    await this.#queue.run(async () => {
      const record = (await readRebuilds(this.#context.store)).find((each) => each.id === id)
      if (record === undefined || !isInterrupted(record)) return
      await completeSwap(this.#context, record)
      await this.#dropLeftovers()
    })
  }

  /** Drops the tables that no answer reads any more, and the others later. */
  async #dropLeftovers(): Promise<void> {
    if ((await dropLeftovers(this.#context)) !== undefined) this.#queue.dropLeftovers()
  }

  async #store(record: RebuildRecord, change: Partial<RebuildRecord>): Promise<RebuildRecord> {
    return await storeRebuild(this.#context.store, record, change)
  }

  async #statusOf(record: RebuildRecord): Promise<RebuildStatus> {
    return await statusOf(this.#context, this.#fillers, record)
  }
}

/** Returns the projections of a rebuild. Throws a {@link RebuildRefused} unless a swap's effect can be computed. */
async function requirePreviewable(context: RebuildContext, record: RebuildRecord): Promise<readonly Projection[]> {
  requireAllowed(record, 'verify', 'previewed')
  if (record.until !== null)
    throw new RebuildRefused(
      `Rebuild ${record.id} ends at ${record.until} and cannot be swapped in, so there is nothing to preview. Start ` +
        'one without --until.'
    )
  const unit = unitOf(context, record)
  await requireRunning(context, unit, 'so its tables do not have the position of the new ones')
  return unit
}

/** Returns the serving tables, some of them replaced. A checkpoint is that of the new tables, as at the comparison. */
function servingWith(serving: ServingTables, tables: TableNames, readers: TableNames = tables): ServingTables {
  return {
    ...serving,
    nameOf: (table) => tables.get(table) ?? serving.nameOf(table),
    checkpointOf: (reader) => readers.get(reader) ?? serving.checkpointOf(reader)
  }
}

function takenFurther({ id, projection }: RebuildRecord): RebuildRefused {
  return new RebuildRefused(
    `Another process has continued rebuild ${id} of ${projection} meanwhile, and nothing was done. See gamenet ` +
      'rebuild status.'
  )
}

/** Its separate loader may have read further than the live one. */
function eventsOf(topic: Topic, loaded: Checkpoints): Compared {
  return { table: eventTableName(topic), from: topic, leftOut: { beyond: loaded.of(loadCheckpoint(topic.name)) } }
}
