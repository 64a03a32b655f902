import { errorMessage, pause } from '@gamenet/schemas'
import { Generations } from '../generations/generations.js'
import { withDependents } from '../store/projection.js'
import { beginRebuild } from './begin.js'
import { foreignStatementsIn, type RebuildContext } from './context.js'
import { RebuildRefused, type RebuildStatus } from './contract.js'
import type { Fillers } from './fillers.js'
import { purposeOf } from './find-rebuild.js'
import { dropLeftovers } from './leftovers.js'
import type { OperationQueue } from './operation-queue.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { restAfter } from './rest-after.js'
import { progressOf } from './status.js'
import { swap } from './swap.js'

const LOOK_MS = 100
/** States in which a rebuild can be cancelled at once. */
const CANCELLABLE: ReadonlySet<string> = new Set(['filling', 'paused', 'failed', 'filled'])

/** Rebuilds whose swap and end need no operator. */
export class AutomaticRebuilds {
  readonly #context: RebuildContext
  readonly #fillers: Fillers
  readonly #queue: OperationQueue

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
        else if (now.state === 'filled') await this.#whileStill(now, () => swap(this.#context, now, 'swapping'))
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
   * Rebuilds the projections whose tables an earlier version of their statements fills, all together, and retries until
   * none is left. Never rejects.
   */
  async upgrade(): Promise<void> {
    const { logger, signal } = this.#context
    let said = ''
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        const record = await this.#queue.run(() => this.#begunUpgrade())
        if (record === undefined) return
        failures = 1
        await this.complete(record, () => undefined)
      } catch (error) {
        if (signal.aborted) return
        const reason = errorMessage(error)
        if (reason !== said) logger.error({ reason }, 'tables of an earlier version cannot be rebuilt; retrying')
        said = reason
        await restAfter(failures, signal)
      }
    }
  }

  /**
   * Returns the rebuild of all outdated projections; undefined if there are none. Begins it unless another process has
   * done so. Cancels those that wait for an operator, except a newer program's: until the swap no data comes.
   */
  async #begunUpgrade(): Promise<RebuildRecord | undefined> {
    const { store, projections, logger } = this.#context
    const { idle } = await new Generations(store, projections).current()
    const outdated = [...idle].filter(([, { isOutdated }]) => isOutdated).map(([{ name }]) => name)
    const [projection, ...others] = outdated
    if (projection === undefined) return undefined
    const unit = withDependents(projections, new Set(outdated)).map(({ name }) => name)
    for (const record of await readRebuilds(store)) {
      if (!CANCELLABLE.has(record.state) || !record.unit.some((name) => unit.includes(name))) continue
      const foreign = await foreignStatementsIn(this.#context, record)
      if (foreign === undefined && record.isAutomatic) return record
      const reason = foreign?.reason ?? 'its tables are rebuilt for another version of the program'
      if (foreign?.isOutdated !== false) await storeRebuild(store, record, { state: 'cancelled', reason })
    }
    const request = { projection, others, until: null, isFromLog: false, retracts: null, isAutomatic: true }
    const begun = await beginRebuild(this.#context, request)
    logger.info({ projections: unit }, 'an earlier version of the program filled these tables; they are rebuilt')
    return begun
  }

  /** Runs work on a rebuild in the queue, unless its state has changed. */
  async #whileStill(record: RebuildRecord, work: () => Promise<unknown>): Promise<void> {
    await this.#queue.run(async () => {
      const now = (await readRebuilds(this.#context.store)).find(({ id }) => id === record.id)
      if (now?.state === record.state) await work()
    })
  }
}

function cannotEnd(record: RebuildRecord): RebuildRefused {
  const { id, projection, state, reason } = record
  const why = reason === null ? '' : ` (${reason})`
  const way = state === 'cancelled' ? '' : ` gamenet rebuild resume ${projection} continues it.`
  return new RebuildRefused(`Rebuild ${id}, which ${purposeOf(record)}, is ${state}${why}.${way}`)
}
