import { ownerOf, type RebuildOperations, type RebuildStatus } from '@gamenet/projector/internals'
import { errorMessage, generationName, ratingTopic, titleCountTopic } from '@gamenet/schemas'
import { erase } from './erasure.js'
import { undo, undoable } from './imports.js'
import { retryAll } from './late-events.js'
import { filledIn } from './operations/bookkeeping.js'
import type { Place } from './place.js'
import type { Process } from './process.js'
import type { RunningProjector } from './projector.js'
import { simulatedProjections } from './simulated.js'
import { newerOf } from './tables/newer-program.js'
import { WORLD } from './virtual-time.js'

/**
 * After this time without an answer the operator repeats the command in another process, while the first one may still
 * run.
 */
const PATIENCE_MS = 20_000
const PROJECTIONS = simulatedProjections.map(({ name }) => name) as [string]
/** Share of commands that are chosen without reading the state. */
const BLIND_SHARE = 0.15
/** Shares of all commands. */
const RETRY_SHARE = 0.15
const UNDO_SHARE = 0.06
const ACTIONS = ['start', 'pause', 'resume', 'cancel', 'verify', 'swap', 'rollback', 'drop'] as const
type Action = (typeof ACTIONS)[number]

/** A result of {@link Operator.end}. */
export type Ended = { readonly swapped: string } | { readonly fault: string }

const STEPS_MAX = 60
const ATTEMPTS = 30
const LOOK_MS = 1000
const ENDED = new Set(['rolled-back', 'cancelled', 'dropped'])

function finalActionFor(newest: RebuildStatus | undefined): Action | 'wait' {
  if (newest === undefined) return 'start'
  const { state, verification, until } = newest
  if (state === 'paused' || state === 'failed') return 'resume'
  if (state === 'filled' && until !== null) return 'cancel'
  if (state === 'filled') return verification === null ? 'verify' : 'swap'
  return state === 'swapped' ? 'rollback' : 'wait'
}

/** Whether the former tables of a swapped rebuild are those of the earlier program, to which there is no way back. */
function isOfEarlierVersion({ tables, isNewer }: Place, status: RebuildStatus | undefined): boolean {
  if (!isNewer) return false
  const waiting = Object.values(status?.tables ?? {})
  return simulatedProjections.some((each) =>
    filledIn(tables).some(
      ({ projection, generation, version }) =>
        projection === each.name &&
        version < (newerOf([each])[0]?.version ?? 1) &&
        ownerOf(each).tables.some((table) => waiting.includes(generationName(table, generation)))
    )
  )
}

/** The process of a projector, and the projector. */
export type Projecting = { readonly process: Process; projector: RunningProjector }

/** Rebuilds projections at random times, through any process that answers. */
export class Operator {
  readonly #place: Place
  readonly #projectors: readonly Projecting[]

  constructor(place: Place, projectors: readonly Projecting[]) {
    this.#place = place
    this.#projectors = projectors
  }

  /** Gives random commands while the world is active. */
  async work(pause: (ms: number) => Promise<void>): Promise<void> {
    const { conditions, world } = this.#place
    const { chance } = world
    for (;;) {
      await pause(chance.below(2 * conditions.operatorEveryMs))
      if (!this.#place.isActive) return
      const projector = chance.oneOf(this.#projectors as [Projecting])
      const drawn = chance.number()
      if (drawn < RETRY_SHARE) {
        void this.#run(projector, (running) => retryAll(this.#place, running))
        continue
      }
      if (drawn < RETRY_SHARE + UNDO_SHARE) {
        const importId = undoable(this.#place)
        if (importId !== undefined) void this.#undo(projector, importId)
        continue
      }
      const requested = this.#run(projector, ({ rebuilds }) => this.#doSomething(rebuilds))
      await Promise.race([requested, pause(PATIENCE_MS)])
    }
  }

  /**
   * Completes all rebuilds while everything else is idle: fills, compares, swaps and rolls back; each step must
   * succeed. Yields after each swap of tables; `until` runs the world until a step is done.
   */
  async *end(until: <Result>(work: Promise<Result>) => Promise<Result | undefined>): AsyncGenerator<Ended> {
    const { world } = this.#place
    const [projector] = this.#projectors as [Projecting]
    const refusal = { reason: '' }
    const run = (work: (rebuilds: RebuildOperations) => Promise<unknown>) =>
      until(this.#run(projector, ({ rebuilds }) => work(rebuilds), refusal).then((answer) => ({ answer })))
    for (let steps = 0; steps < STEPS_MAX; steps += 1) {
      const listed = (await run((rebuilds) => rebuilds.list()))?.answer as readonly RebuildStatus[] | undefined
      const newest = listed?.find(({ state }) => !ENDED.has(state))
      const next = finalActionFor(newest)
      const action = next === 'rollback' && isOfEarlierVersion(this.#place, newest) ? 'drop' : next
      const projection = newest?.projection ?? this.#finalProjection()
      const unerased = await this.eraseBefore(action, until)
      if (unerased !== undefined) yield { fault: unerased }
      if (action === 'wait') {
        await until(world.time.pause(WORLD, LOOK_MS))
        continue
      }
      world.note(`operator, finally: ${action} ${projection}`, WORLD)
      const done = await run((rebuilds) => this.#do(rebuilds, action, projection))
      const answer = done?.answer
      if (answer === undefined)
        yield { fault: `${action} of ${projection} fails while everything is idle: ${refusal.reason}` }
      else if (answer === 'different')
        yield { fault: `the rebuilt tables of ${projection} differ from the serving ones` }
      else if (action === 'swap' || action === 'rollback') yield { swapped: `after ${action} of ${projection}` }
      if (action === 'rollback') return
    }
    yield { fault: `rebuilds do not end` }
  }

  /**
   * Retries all dead letters, repeats the undos of imports that may be half undone, and sometimes undoes one more import, while
   * everything else is idle. Returns the fault, or undefined.
   */
  async undoAll(until: <Result>(work: Promise<Result>) => Promise<Result | undefined>): Promise<string | undefined> {
    const [projector] = this.#projectors as [Projecting]
    const refusal = { reason: '' }
    const run = (work: (projector: RunningProjector) => Promise<unknown>) =>
      until(this.#run(projector, (running) => work(running).then(() => true), refusal))
    const { imports, world } = this.#place
    const last = imports.get(undoable(this.#place) ?? '')
    if (last !== undefined) last.isUndone ||= world.chance.happens(0.5)
    let left = [...imports].filter(([, { isUndone }]) => isUndone).map(([importId]) => importId)
    // An undo may wait for another one, or for an earlier rollback.
    for (let n = 0; n < ATTEMPTS && left.length > 0; n += 1) {
      if (n > 0) await until(world.time.pause(WORLD, LOOK_MS))
      const still: string[] = []
      for (const importId of left) {
        await run(({ rebuilds }) => this.#makeWay(rebuilds))
        if ((await run((running) => undo(this.#place, running, importId))) !== true) still.push(importId)
      }
      left = still
    }
    if (left.length > 0) return `import ${left.join(', ')} cannot be undone while everything is idle: ${refusal.reason}`
    if ((await run((running) => retryAll(this.#place, running))) !== true)
      return `dead letters cannot be retried while everything is idle: ${refusal.reason}`
    this.#place.areLaterRead = true
    return undefined
  }

  /** Erases the user of this world, through the first process; undefined when it failed. */
  async erase(refusal = { reason: '' }): Promise<true | undefined> {
    const { erasure } = this.#place
    if (erasure === undefined) return true
    const [projector] = this.#projectors as [Projecting]
    return await this.#run(
      projector,
      (running) => erase(this.#place, running, erasure).then(() => true as const),
      refusal
    )
  }

  /**
   * Erases the user that is due before a step, or repeats a failed erasure, while everything else is idle. Returns the
   * fault, or undefined.
   */
  async eraseBefore(
    step: Action | 'wait' | undefined,
    until: <Result>(work: Promise<Result>) => Promise<Result | undefined>
  ): Promise<string | undefined> {
    const { erasure } = this.#place
    const refusal = { reason: '' }
    // Each final rebuild ends with a rollback.
    const isNow = step === erasure?.before || step === 'rollback'
    if (erasure?.isDone !== false || !isNow || (await until(this.erase(refusal))) === true) return undefined
    return `no user can be erased while everything is idle: ${refusal.reason}`
  }

  /** Ends the rebuilds that block an import undo. */
  async #makeWay(rebuilds: RebuildOperations): Promise<void> {
    for (const { projection, state, retracts } of await rebuilds.list()) {
      if (retracts !== null && (state === 'paused' || state === 'failed')) await rebuilds.resume(projection)
      else if (retracts === null && ['filling', 'paused', 'failed', 'filled'].includes(state))
        await rebuilds.cancel(projection)
    }
  }

  get #hasUndone(): boolean {
    return [...this.#place.imports.values()].some(({ isUndone }) => isUndone)
  }

  /** Undone imports must stay undone, and erased users erased, when the log is read again. */
  #finalProjection(): string {
    if (this.#place.erasure !== undefined) return ratingTopic.name
    return this.#hasUndone ? titleCountTopic.name : this.#place.world.chance.oneOf(PROJECTIONS)
  }

  async #undo(projector: Projecting, importId: string): Promise<void> {
    await this.#run(projector, async (running) => {
      this.#place.world.note(`operator: undoes import ${importId}`)
      await undo(this.#place, running, importId)
      this.#place.world.note(`operator: import ${importId} is undone`)
    })
  }

  /** Runs a command in a process; resolves with its answer, or undefined if it failed; never if the process dies. */
  #run<Result>(
    { process, projector }: Projecting,
    work: (projector: RunningProjector) => Promise<Result>,
    refusal = { reason: '' }
  ) {
    const { world } = this.#place
    const { life } = process
    return new Promise<Result | undefined>((resolve) => {
      if (life.isOver) {
        resolve(undefined)
        return
      }
      world.time.after(life, 0, () => {
        work(projector).then(resolve, (error: unknown) => {
          refusal.reason = errorMessage(error)
          world.note(`answers the operator: ${refusal.reason}`)
          resolve(undefined)
        })
      })
    })
  }

  async #doSomething(rebuilds: RebuildOperations): Promise<void> {
    const { world } = this.#place
    const { chance } = world
    const isBlind = chance.happens(BLIND_SHARE)
    const all = await rebuilds.list()
    const newest = all.length === 0 ? undefined : chance.happens(0.8) ? all[0] : chance.oneOf(all as [RebuildStatus])
    const action = isBlind ? chance.oneOf(ACTIONS) : this.#nextFor(newest)
    if (action === undefined) return
    const projection =
      newest === undefined || action === 'start' || isBlind ? chance.oneOf(PROJECTIONS) : newest.projection
    world.note(`operator: ${action} ${projection}`)
    await this.#do(rebuilds, action, projection)
  }

  /** Returns a command for a rebuild, usually the one that continues it. */
  #nextFor(newest: RebuildStatus | undefined): Action | undefined {
    const { chance } = this.#place.world
    if (newest === undefined) return 'start'
    const { state, verification, until } = newest
    if (state === 'filling') return chance.happens(0.85) ? undefined : chance.oneOf(['pause', 'cancel', 'verify'])
    if (state === 'paused' || state === 'failed') return chance.happens(0.85) ? 'resume' : 'cancel'
    if (state === 'filled' && until !== null) return chance.oneOf(['verify', 'cancel'])
    if (state === 'filled' && verification === null) return chance.happens(0.9) ? 'verify' : 'cancel'
    if (state === 'filled') return chance.happens(0.85) ? 'swap' : chance.oneOf(['verify', 'cancel'])
    if (state === 'swapped') return chance.oneOf(['rollback', 'rollback', 'drop', 'start'])
    return 'start'
  }

  async #do(rebuilds: RebuildOperations, action: Action, projection: string): Promise<'done' | 'equal' | 'different'> {
    const { world, conditions } = this.#place
    let outcome: 'done' | 'equal' | 'different' = 'done'
    if (action === 'start')
      await rebuilds.start(
        projection,
        this.#place.isActive
          ? this.#options()
          : { isFromLog: world.chance.happens(this.#hasUndone ? 0.8 : conditions.fromLogShare) }
      )
    else if (action === 'swap') await rebuilds.swap(projection, { acceptDifferences: true })
    else if (action === 'verify') {
      const { isEqual } = await rebuilds.verify(projection)
      outcome = isEqual ? 'equal' : 'different'
    } else await rebuilds[action](projection)
    world.note(`operator: ${action} ${projection} is ${outcome}`)
    return outcome
  }

  #options(): { until?: string; isFromLog?: boolean } {
    const { conditions, world } = this.#place
    const { chance } = world
    const drawn = chance.number()
    if (chance.happens(conditions.fromLogShare)) return { isFromLog: true }
    if (drawn < 0.1) return { until: String(chance.below(10)) }
    if (drawn < 0.2) return { until: '2026-03-14T20:41:10Z' }
    return {}
  }
}
