import type { RebuildOperations, RebuildStatus } from '@gamenet/projector/parts'
import type { Place } from './place.js'
import type { Process } from './process.js'
import { simulatedProjections } from './simulated.js'
import type { Store } from './store.js'
import { WORLD } from './virtual-time.js'

const EVERY_MS = 1500
/** Whoever hears nothing for so long takes it up elsewhere, while it may go on. */
const PATIENCE_MS = 20_000
const PROJECTIONS = simulatedProjections.map(({ name }) => name) as [string]
/** Share of what is done without a look at what there is. */
const BLIND_SHARE = 0.15
const ACTIONS = ['start', 'pause', 'resume', 'cancel', 'verify', 'swap', 'rollback', 'drop'] as const
type Action = (typeof ACTIONS)[number]

/** What an operator comes to with everybody at rest. */
export type Ended = { readonly exchanged: string } | { readonly fault: string }

const STEPS_MAX = 60
const LOOK_MS = 1000
const ENDED = new Set(['rolled-back', 'cancelled', 'dropped'])

function lastFor(newest: RebuildStatus | undefined): Action | 'wait' {
  if (newest === undefined) return 'start'
  const { state, verification, until } = newest
  if (state === 'paused' || state === 'failed') return 'resume'
  if (state === 'filled' && until !== null) return 'cancel'
  if (state === 'filled') return verification === null ? 'verify' : 'swap'
  return state === 'swapped' ? 'rollback' : 'wait'
}

/** Whether a rebuild makes its tables as those that serve were made. */
function isOfServing(store: Store, status: RebuildStatus | undefined): boolean {
  const { record } = store.written('rebuild').get(String(status?.id)) ?? {}
  const { definitions } = JSON.parse(String(record)) as { definitions: Readonly<Record<string, string>> }
  const serving = store.written('projection_definition')
  return Object.entries(definitions).every(([name, text]) => serving.get(name)?.definition === text)
}

/** Where a projector runs, and its rebuilds while it does. */
export type Projecting = { readonly process: Process; rebuilds: RebuildOperations | undefined }

/** Somebody who rebuilds projections at any hour, through whichever process answers. */
export class Operator {
  readonly #place: Place
  readonly #projectors: readonly Projecting[]

  constructor(place: Place, projectors: readonly Projecting[]) {
    this.#place = place
    this.#projectors = projectors
  }

  /** Does something now and then while the world is lively. */
  async work(pause: (ms: number) => Promise<void>): Promise<void> {
    const { chance } = this.#place.world
    for (;;) {
      await pause(chance.below(2 * EVERY_MS))
      if (!this.#place.isLively) return
      const projector = chance.oneOf(this.#projectors as [Projecting])
      const asked = this.#ask(projector, (rebuilds) => this.#doSomething(rebuilds))
      await Promise.race([asked, pause(PATIENCE_MS)])
    }
  }

  /**
   * Ends what there is of rebuilds, with everybody at rest: fills, compares, swaps, takes back, each of which must work. Tells
   * behind each exchange of tables; `until` lives on until something is done.
   */
  async *end(until: <Result>(work: Promise<Result>) => Promise<Result | undefined>): AsyncGenerator<Ended> {
    const { world } = this.#place
    const { chance } = world
    const [projector] = this.#projectors as [Projecting]
    const told = { reason: '' }
    const ask = (work: (rebuilds: RebuildOperations) => Promise<unknown>) =>
      until(this.#ask(projector, work, told).then((answer) => ({ answer })))
    for (let steps = 0; steps < STEPS_MAX; steps += 1) {
      const listed = (await ask((rebuilds) => rebuilds.list()))?.answer as readonly RebuildStatus[] | undefined
      const newest = listed?.find(({ state }) => !ENDED.has(state))
      const action = lastFor(newest)
      const projection = newest?.projection ?? chance.oneOf(PROJECTIONS)
      if (action === 'wait') {
        await until(world.time.pause(WORLD, LOOK_MS))
        continue
      }
      world.note(`operator, at last: ${action} ${projection}`, WORLD)
      const done = await ask((rebuilds) => this.#do(rebuilds, action, projection))
      const answer = done?.answer
      if (answer === undefined) yield { fault: `${action} of ${projection} fails with all at rest: ${told.reason}` }
      else if (answer === 'different' && isOfServing(this.#place.store, newest))
        yield { fault: `what was rebuilt of ${projection} is not what serves` }
      else if (action === 'swap' || action === 'rollback') yield { exchanged: `after ${action} of ${projection}` }
      if (action === 'rollback') return
    }
    yield { fault: `rebuilds do not come to an end` }
  }

  /** Has something done in a process; resolves with its answer, undefined when it failed, never when the process dies. */
  #ask<Result>(
    { process, rebuilds }: Projecting,
    work: (rebuilds: RebuildOperations) => Promise<Result>,
    told = { reason: '' }
  ) {
    const { world } = this.#place
    const { life } = process
    return new Promise<Result | undefined>((resolve) => {
      if (rebuilds === undefined || life.isOver) {
        resolve(undefined)
        return
      }
      world.time.after(life, 0, () => {
        work(rebuilds).then(resolve, (error: unknown) => {
          told.reason = error instanceof Error ? error.message : String(error)
          world.note(`tells the operator: ${told.reason}`)
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
    const projection =
      newest === undefined || action === 'start' || isBlind ? chance.oneOf(PROJECTIONS) : newest.projection
    world.note(`operator: ${action} ${projection}`)
    await this.#do(rebuilds, action, projection)
  }

  #nextFor(newest: RebuildStatus | undefined): Action {
    const { chance } = this.#place.world
    if (newest === undefined) return 'start'
    const { state, verification, until } = newest
    if (state === 'filling') return chance.oneOf(['pause', 'cancel', 'verify', 'verify'])
    if (state === 'paused' || state === 'failed') return chance.oneOf(['resume', 'resume', 'resume', 'cancel'])
    if (state === 'filled' && until !== null) return chance.oneOf(['verify', 'cancel'])
    if (state === 'filled' && verification === null) return chance.oneOf(['verify', 'verify', 'verify', 'cancel'])
    if (state === 'filled') return chance.oneOf(['swap', 'swap', 'swap', 'verify', 'cancel'])
    if (state === 'swapped') return chance.oneOf(['rollback', 'rollback', 'drop', 'start'])
    return 'start'
  }

  async #do(rebuilds: RebuildOperations, action: Action, projection: string): Promise<'done' | 'equal' | 'different'> {
    const { world } = this.#place
    let outcome: 'done' | 'equal' | 'different' = 'done'
    if (action === 'start')
      await rebuilds.start(
        projection,
        this.#place.isLively ? this.#options() : { isFromLog: world.chance.happens(0.3) }
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
    const { chance } = this.#place.world
    const drawn = chance.number()
    if (drawn < 0.1) return { until: String(chance.below(10)) }
    if (drawn < 0.2) return { until: '2026-03-14T20:41:10Z' }
    return drawn < 0.5 ? { isFromLog: true } : {}
  }
}
