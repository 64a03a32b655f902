import { randomUUID } from 'node:crypto'
import { backoffMs, DEFAULT_BACKOFF, pause, reasonOf } from '../backoff.js'
import { Checkpoints } from '../checkpoint.js'
import { eventTableName } from '../event-table.js'
import type { Passes } from '../passes.js'
import type { Projection } from '../projection.js'
import { type Beginning, begin, unitFor } from './begin.js'
import { makingOf, namesOf, type RebuildContext, unitOf } from './context.js'
import { approach, atRest, catchUpOnce, end, exchange, tablesToDrop } from './exchange.js'
import { doneByProjection, STEP_SIZES, type StepSizes } from './fill.js'
import { Fillers } from './fillers.js'
import { cloneTables, copyName, dropTables, tablesOf, uuidsOf } from './fresh-tables.js'
import { dropLeftovers } from './leftovers.js'
import { planOf } from './plan.js'
import {
  type AroundExchange,
  type RebuildPlan,
  RebuildRefused,
  type RebuildState,
  type RebuildStatus,
  type Rebuilds,
  type Retractions,
  type SwapReport,
  type VerifyReport
} from './rebuild.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { beyond, reloadedTopic } from './reload.js'
import { deleteRetracted, unfinishedRetractions } from './retraction.js'
import { Steps } from './steps.js'
import { projectionNamed } from './unit.js'
import { compareTables } from './verify.js'

/** Those that have tables which wait to serve. */
const UNDER_WAY: ReadonlySet<RebuildState> = new Set([
  'filling',
  'paused',
  'failed',
  'filled',
  'swapping',
  'rolling-back'
])

const LOOK_MS = 100

type Planned = RebuildPlan & Pick<Beginning, 'costs'>

function cannotEnd({ id, projection, state, reason }: RebuildRecord, importId: string): RebuildRefused {
  const why = reason === null ? '' : ` (${reason})`
  const way = state === 'cancelled' ? '' : ` It goes on by gamenet rebuild resume ${projection}.`
  return new RebuildRefused(`Rebuild ${id}, which takes import ${importId} back, is ${state}${why}.${way}`)
}

/** For whoever has no answers to hold. */
const exchangeAtOnce: AroundExchange = async (_projections, exchange) => {
  const begun = performance.now()
  await exchange()
  return performance.now() - begun
}

/** What became of the last rebuild of a projection, and what can be done now. */
function afterwards(last: RebuildRecord | undefined, name: string): string {
  const anew = `gamenet rebuild start ${name} makes new ones.`
  if (last === undefined) return `It was never rebuilt: gamenet rebuild start ${name} begins it.`
  const its = `Its last rebuild, ${last.id},`
  const why = last.reason === null ? '' : ` (${last.reason})`
  switch (last.state) {
    case 'rolled-back':
      return `${its} was rolled back: the tables of before serve again, and its own are dropped. ${anew}`
    case 'cancelled':
      return `${its} was cancelled${why}, and its tables are dropped. ${anew}`
    case 'dropped':
      return `${its} was swapped in, and the tables of before are dropped${why}. ${anew}`
    case 'swapped':
      return `${its} serves already: gamenet rebuild rollback ${name} takes it back, gamenet rebuild drop ${name} frees the disk of the tables of before.`
    default:
      return `${its} is ${last.state}${why}: gamenet rebuild status ${name} tells how far it is.`
  }
}

/** Of these nothing is to be left but the record. */
function isOver({ state }: RebuildRecord): boolean {
  return state === 'cancelled' || state === 'rolled-back' || state === 'dropped'
}

function isCutOff({ state }: RebuildRecord): boolean {
  return state === 'swapping' || state === 'rolling-back'
}

/** The rebuilds of an installation, as one process sees and carries them out; operations run one after the other. */
export class RebuildOperations implements Rebuilds, Retractions {
  readonly #context: RebuildContext
  readonly #fillers: Fillers
  #queue: Promise<unknown> = Promise.resolve()
  #isRecovered = false
  #tidying: Promise<void> | undefined

  constructor(
    needs: Omit<RebuildContext, 'process' | 'sizes' | 'aroundExchange' | 'steps'> & {
      readonly aroundExchange: AroundExchange | undefined
      /** A lock that the steps of all processes' rebuilds hold together. */
      readonly fills: Passes
      readonly process?: string
      readonly sizes?: StepSizes
    }
  ) {
    const { aroundExchange = exchangeAtOnce, process = randomUUID(), sizes = STEP_SIZES, fills, ...rest } = needs
    this.#context = { ...rest, aroundExchange, steps: new Steps(fills), process, sizes }
    this.#fillers = new Fillers(this.#context)
  }

  /** Goes on with fills that an earlier process left, and drops what it left besides. */
  open(): void {
    this.#fillers.start()
    this.#tidy()
  }

  /** Resolves when nothing is written any more; for after the context's signal. */
  async closed(): Promise<void> {
    await this.#queue.catch(() => undefined)
    await this.#tidying
    await this.#fillers.allEnded()
    await this.#context.folding.close()
  }

  /** Resolves when the steps that have begun by now, of rebuilds in whatever process, have ended. */
  async stepsEnded(): Promise<void> {
    await this.#context.steps.ended()
  }

  /** Ends exchanges and drops that a crash cut off. Before the first pass; tried again when it rejects. */
  async recover(): Promise<void> {
    if (this.#isRecovered) return
    const { tables, passes } = this.#context
    const records = await readRebuilds(tables)
    const remains = records.filter(isOver).flatMap(tablesToDrop)
    await dropTables(tables, (await uuidsOf(tables, remains)).keys())
    if (records.some(isCutOff)) {
      await passes.alone(async () => {
        // Another process may be at it, or have ended it by now.
        for (const record of (await readRebuilds(tables)).filter(isCutOff)) await end(this.#context, record)
      })
    }
    this.#isRecovered = true
  }

  /**
   * Rejects while an exchange is cut off, which the next {@link recover} ends: what were written now would be put away with the
   * tables that were to go, and checkpoints would say that it serves. For work beside which no exchange begins.
   */
  async requireWhole(): Promise<void> {
    if (!(await readRebuilds(this.#context.tables)).some(isCutOff)) return
    this.#isRecovered = false
    throw new Error('An exchange of tables was cut off; it is ended first.')
  }

  async plan(projection: string): Promise<RebuildPlan> {
    return await this.#inTurn(async () => {
      const { costs: _costs, ...plan } = await this.#plan({ projection, until: null, isFromLog: false, retracts: null })
      return plan
    })
  }

  async start(
    projection: string,
    { until = null, isFromLog = false }: { readonly until?: string | null; readonly isFromLog?: boolean } = {}
  ): Promise<RebuildStatus> {
    return await this.#inTurn(async () => {
      const record = await this.#begin({ projection, until, isFromLog, retracts: null })
      this.#fillers.wake()
      return await this.#statusOf(record)
    })
  }

  async list(): Promise<RebuildStatus[]> {
    const records = await readRebuilds(this.#context.tables)
    return await Promise.all(records.map((record) => this.#statusOf(record)))
  }

  async pause(projection: string): Promise<RebuildStatus> {
    return await this.#inTurn(async () => {
      const record = await this.#underWay(projection)
      this.#require(record, ['filling'], 'paused')
      const paused = await this.#store(record, { state: 'paused' })
      await this.#fillers.ended(record.id)
      return await this.#statusOf(paused)
    })
  }

  async resume(projection: string): Promise<RebuildStatus> {
    return await this.#inTurn(async () => {
      const record = await this.#underWay(projection)
      this.#require(record, ['paused', 'failed'], 'resumed')
      const resumed = await this.#store(record, { state: 'filling', reason: null })
      this.#fillers.wake()
      return await this.#statusOf(resumed)
    })
  }

  async cancel(projection: string): Promise<RebuildStatus> {
    return await this.#inTurn(async () => {
      const record = await this.#underWay(projection)
      this.#require(record, ['filling', 'paused', 'failed', 'filled'], 'cancelled')
      if (record.retracts !== null && record.state !== 'failed') {
        throw new RebuildRefused(
          `Rebuild ${record.id} takes import ${record.retracts} back, whose events are gone already: it is not cancelled. It ends by itself; gamenet import undo ${record.retracts} waits for it.`
        )
      }
      const cancelled = await this.#store(record, { state: 'cancelled', reason: null })
      await this.#fillers.ended(record.id)
      await dropTables(this.#context.tables, tablesToDrop(record))
      return await this.#statusOf(cancelled)
    })
  }

  async verify(projection: string): Promise<VerifyReport> {
    return await this.#inTurn(async () => {
      const record = await this.#underWay(projection)
      this.#require(record, ['filled'], 'verified')
      const { tables, signal } = this.#context
      const topic = reloadedTopic(record)
      const copies = new Map(Object.entries(record.tables).map(([table, fresh]) => [table, copyName(fresh)]))
      if (record.until === null) await approach(this.#context, record)
      try {
        // Old and new at the same place; what comes afterwards goes into neither.
        const loaded = await atRest(this.#context, record, async () => {
          if (record.until === null) await catchUpOnce(this.#context, record)
          await cloneTables(tables, copies)
          return await Checkpoints.read(tables)
        })
        const compared = unitOf(record).flatMap((projection) =>
          tablesOf(projection).map((table) => ({ table, from: projection.from, isVoid: projection.voids?.[table] }))
        )
        // A loader of its own may have read further than the live one.
        if (topic !== undefined)
          compared.unshift({ table: eventTableName(topic), from: topic, isVoid: beyond(topic, loaded) })
        const report = await compareTables(tables, compared, { live: copies, fresh: namesOf(record), signal })
        const differences = report.tables.reduce((sum, { differences: each }) => sum + each, 0)
        const isEqual = report.tables.every(({ differentBuckets }) => differentBuckets === 0)
        const verifiedAt = new Date().toISOString()
        await this.#store(record, { verification: { verifiedAt, isEqual, differences } })
        return { id: record.id, until: record.until, isEqual, ...report }
      } finally {
        await dropTables(tables, copies.values())
      }
    })
  }

  async swap(
    projection: string,
    { acceptDifferences = false }: { readonly acceptDifferences?: boolean } = {}
  ): Promise<SwapReport> {
    return await this.#inTurn(async () => {
      const record = await this.#underWay(projection)
      this.#require(record, ['filled'], 'swapped in')
      const { verification, until } = record
      const name = record.projection
      if (until !== null) {
        throw new RebuildRefused(
          `Rebuild ${record.id} ends at ${until} and is for inspection only. Start one without --until to swap it in.`
        )
      }
      if (verification === null)
        throw new RebuildRefused(
          `Rebuild ${record.id} was not verified against the tables that serve now. Run: gamenet rebuild verify ${name}.`
        )
      if (!verification.isEqual && !acceptDifferences) {
        throw new RebuildRefused(
          `Rebuild ${record.id} differs from the tables that serve in ${verification.differences} rows. Look at them by gamenet rebuild verify ${name}; swap them in by --accept-differences, or gamenet rebuild cancel ${name}.`
        )
      }
      return await this.#exchange(record, 'swapping')
    })
  }

  async rollback(projection: string): Promise<SwapReport> {
    return await this.#inTurn(async () => {
      const record = await this.#swapped(projection)
      if (record.retracts !== null) {
        throw new RebuildRefused(
          `Rebuild ${record.id} took import ${record.retracts} back, and what served before holds it: it is not rolled back. Publish the import again if its events are wanted.`
        )
      }
      return await this.#exchange(record, 'rolling-back')
    })
  }

  async drop(projection: string): Promise<RebuildStatus> {
    return await this.#inTurn(async () => {
      const record = await this.#swapped(projection)
      return await this.#statusOf(await this.#dropOld(record))
    })
  }

  async retract(
    importId: string,
    topicName: string,
    onProgress: (progress: RebuildStatus['progress']) => void
  ): Promise<void> {
    const { tables, signal } = this.#context
    const first = this.#firstOf(topicName)
    const asked = { projection: first.name, until: null, isFromLog: false, retracts: importId }
    const record = await this.#inTurn(async () => {
      const begun = await this.#begunRetraction(importId)
      if (begun !== undefined) return begun
      try {
        return await this.#begin(asked, () => deleteRetracted(tables, first.from, [importId]))
      } catch (error) {
        // Another process may have begun it meanwhile.
        const byAnother = await this.#begunRetraction(importId)
        if (byAnother === undefined) throw error
        return byAnother
      }
    })
    this.#fillers.wake()
    for (;;) {
      signal.throwIfAborted()
      const now = (await readRebuilds(tables)).find(({ id }) => id === record.id) ?? record
      if (now.state === 'filling') onProgress(await this.#progressOf(now))
      else if (now.state === 'filled') await this.#whileStill(now, () => exchange(this.#context, now, 'swapping'))
      // What served before holds the import: nobody must go back there.
      else if (now.state === 'swapped') await this.#whileStill(now, () => this.#dropOld(now))
      else if (now.state === 'dropped') return
      else if (now.state !== 'swapping') throw cannotEnd(now, importId)
      await pause(LOOK_MS, signal)
    }
  }

  async requireRetractable(importId: string, topicName: string): Promise<void> {
    const asked = { projection: this.#firstOf(topicName).name, until: null, isFromLog: false, retracts: importId }
    // Of a sample there is one at a time.
    await this.#inTurn(async () => {
      if ((await this.#begunRetraction(importId)) === undefined) await this.#unhindered(asked)
    })
  }

  async unfinishedRetractions(): Promise<{ readonly importId: string; readonly topic: string }[]> {
    return await unfinishedRetractions(this.#context.tables)
  }

  async #begunRetraction(importId: string): Promise<RebuildRecord | undefined> {
    const records = await readRebuilds(this.#context.tables)
    return records.find(({ retracts, state }) => retracts === importId && state !== 'cancelled')
  }

  #firstOf(topicName: string): Projection {
    const first = this.#context.projections.find(({ from }) => from.name === topicName)
    if (first !== undefined) return first
    throw new RebuildRefused(`There is no topic ${JSON.stringify(topicName)}.`, { isUsage: true })
  }

  /** Does work on a rebuild in turn, unless somebody has taken it further meanwhile. */
  async #whileStill(record: RebuildRecord, work: () => Promise<unknown>): Promise<void> {
    await this.#inTurn(async () => {
      const now = (await readRebuilds(this.#context.tables)).find(({ id }) => id === record.id)
      if (now?.state === record.state) await this.#exchanging(work)
    })
  }

  async #exchange(record: RebuildRecord, state: 'swapping' | 'rolling-back'): Promise<SwapReport> {
    const report = await this.#exchanging(() => exchange(this.#context, record, state))
    if (report !== undefined) return report
    throw new RebuildRefused(
      `Another process has taken rebuild ${record.id} of ${record.projection} further meanwhile, and nothing was done. Look at it by gamenet rebuild status.`
    )
  }

  /** What fails half-way is ended before the next pass. */
  async #exchanging<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      this.#isRecovered = false
      this.#context.runner.wake()
      throw error
    }
  }

  async #dropOld(record: RebuildRecord): Promise<RebuildRecord> {
    const dropped = await this.#store(record, { state: 'dropped' })
    await dropTables(this.#context.tables, tablesToDrop(record))
    return dropped
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await this.#afterOthers(work)
    } catch (error) {
      if (!(error instanceof RebuildRefused)) {
        // It may have been stored all the same, and only its answer was lost.
        this.#fillers.wake()
        this.#tidy()
      }
      throw error
    }
  }

  /** Drops what is left of rebuilds, in the background, between operations; what fails is tried again. */
  #tidy(): void {
    const { tables, isShared, logger, signal } = this.#context
    const tidy = async () => {
      for (let failures = 1; !signal.aborted; failures += 1) {
        try {
          return await this.#afterOthers(() => dropLeftovers(tables, isShared))
        } catch (error) {
          if (signal.aborted) return
          logger.warn({ reason: reasonOf(error) }, 'what rebuilds left cannot be dropped; it is tried again')
          await pause(backoffMs(DEFAULT_BACKOFF, failures), signal)
        }
      }
    }
    this.#tidying ??= tidy().finally(() => {
      this.#tidying = undefined
    })
  }

  async #afterOthers<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#queue.catch(() => undefined).then(work)
    this.#queue = turn
    return await turn
  }

  /** Begins a rebuild while no process's does anything: of two that begin at once, the second finds the first. */
  async #begin(
    asked: Omit<Beginning, 'costs'>,
    prepare: () => Promise<void> = async () => undefined
  ): Promise<RebuildRecord> {
    const { costs } = await this.#unhindered(asked)
    return await this.#context.steps.alone(async () => {
      await this.#requireAlone(asked)
      await prepare()
      return await begin(this.#context, { ...asked, costs })
    })
  }

  /** A plan without obstacles. Another rebuild is looked for before a sample is measured, which takes long. */
  async #unhindered(asked: Omit<Beginning, 'costs'>): Promise<Planned> {
    await this.#requireAlone(asked)
    const plan = await this.#plan(asked)
    if (plan.obstacles.length > 0) throw new RebuildRefused(plan.obstacles.join(' '))
    return plan
  }

  async #requireAlone(asked: Omit<Beginning, 'costs'>): Promise<void> {
    const other = await this.#otherThan(asked)
    if (other !== undefined) throw new RebuildRefused(other)
  }

  /** What is said of a rebuild that has some of these projections already. */
  async #otherThan(asked: Omit<Beginning, 'costs'>): Promise<string | undefined> {
    const names = new Set(unitFor(this.#context.projections, asked).map(({ name }) => name))
    const other = (await readRebuilds(this.#context.tables)).find(
      ({ state, unit }) => UNDER_WAY.has(state) && unit.some((name) => names.has(name))
    )
    if (other === undefined) return undefined
    const { id, projection, state, until, retracts } = other
    const shared = other.unit.filter((name) => names.has(name)).join(', ')
    const cancel = `gamenet rebuild cancel ${projection}`
    const way =
      retracts !== null
        ? `it takes import ${retracts} back; wait for gamenet import undo ${retracts}.`
        : until !== null
          ? `it is for inspection only; ${cancel} drops it.`
          : state === 'filled'
            ? `swap it in, or ${cancel}.`
            : `wait until it is filled and swap it in, or ${cancel}.`
    return `Rebuild ${id} of ${projection} is ${state} and has ${shared}: ${way}`
  }

  async #plan(asked: Omit<Beginning, 'costs'>): Promise<Planned> {
    const { tables, projections, folding, signal, keepFree } = this.#context
    const unit = unitFor(projections, asked)
    const plan = await planOf({ tables, folding, signal }, unit, await Checkpoints.read(tables), keepFree)
    const other = await this.#otherThan(asked)
    const obstacles = other === undefined ? plan.obstacles : [other, ...plan.obstacles]
    return { ...plan, projection: asked.projection, obstacles }
  }

  /** The one of a projection that has tables which wait to serve. */
  async #underWay(projection: string): Promise<RebuildRecord> {
    const { tables, projections } = this.#context
    const { name } = projectionNamed(projections, projection)
    const records = await readRebuilds(tables)
    const record = records.find((each) => each.projection === name && UNDER_WAY.has(each.state))
    if (record !== undefined) return record
    const other = records.find((each) => UNDER_WAY.has(each.state) && each.unit.includes(name))
    const last = records.find((each) => each.projection === name)
    const hint = other === undefined ? afterwards(last, name) : `It is part of the one of ${other.projection}.`
    throw new RebuildRefused(`There is no rebuild of ${name} under way. ${hint}`)
  }

  /** The one of a projection whose old tables are kept. */
  async #swapped(projection: string): Promise<RebuildRecord> {
    const { tables, projections } = this.#context
    const { name } = projectionNamed(projections, projection)
    const records = (await readRebuilds(tables)).filter(({ unit }) => unit.includes(name))
    const swapped = records.filter(({ state }) => state === 'swapped')
    const record = swapped.find((each) => each.projection === name)
    if (record !== undefined) return record
    const [other] = swapped
    if (other !== undefined) {
      throw new RebuildRefused(
        `The old tables of ${name} belong to rebuild ${other.id} of ${other.projection}, by which they go back or are dropped.`
      )
    }
    const last = records.find((each) => each.projection === name)
    throw new RebuildRefused(`There are no old tables of ${name} to go back to or to drop. ${afterwards(last, name)}`)
  }

  #require(record: RebuildRecord, states: readonly RebuildState[], what: string): void {
    if (states.includes(record.state)) return
    const reason = record.reason === null ? '' : ` (${record.reason})`
    throw new RebuildRefused(
      `Rebuild ${record.id} of ${record.projection} is ${record.state}${reason} and cannot be ${what}; that takes one that is ${states.join(' or ')}.`
    )
  }

  async #store(record: RebuildRecord, change: Partial<RebuildRecord>): Promise<RebuildRecord> {
    return await storeRebuild(this.#context.tables, record, change)
  }

  async #statusOf(record: RebuildRecord): Promise<RebuildStatus> {
    const { id, projection, unit, tables, state, reason, until, isFromLog, retracts, startedAt, changedAt } = record
    return {
      ...{ id, projection, unit, tables, state, reason, until, isFromLog, retracts, startedAt, changedAt },
      verification: record.verification,
      progress: await this.#progressOf(record)
    }
  }

  async #progressOf(record: RebuildRecord): Promise<RebuildStatus['progress']> {
    const total = Object.values(record.events).reduce((sum, events) => sum + events, 0)
    const isFilling = ['filling', 'paused', 'failed'].includes(record.state)
    if (!isFilling) return { projection: '', done: total, total, share: 1, eventsPerSecond: null, etaSeconds: null }
    const checkpoints = await Checkpoints.read(makingOf(this.#context, record).tables)
    const done = doneByProjection(record, unitOf(record), checkpoints)
    const left = new Map(
      Object.keys(record.events).map((name) => [name, (record.events[name] ?? 0) - (done.get(name) ?? 0)])
    )
    const estimate = this.#fillers.estimateOf(record)
    return {
      projection: [...left].find(([, events]) => events > 0)?.[0] ?? '',
      done: [...done.values()].reduce((sum, events) => sum + events, 0),
      total,
      share: estimate.shareOf(done, left),
      eventsPerSecond: estimate.eventsPerSecond,
      etaSeconds: estimate.remaining(left, performance.now())
    }
  }
}
