import { pause } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import { storeAt } from '../generations/generations.js'
import { projections } from '../projections/projections.js'
import { deleteImports } from '../store/event-table.js'
import { readRetractions } from '../store/import.js'
import type { Store } from '../store/operation.js'
import type { Projection } from '../store/projection.js'
import { beginRebuild, planWithoutObstacles } from './begin.js'
import { liveOf, type RebuildContext } from './context.js'
import { type ImportUndos, RebuildRefused, type RebuildStatus } from './contract.js'
import type { Fillers } from './fillers.js'
import { dropLeftovers } from './leftovers.js'
import type { OperationQueue } from './operation-queue.js'
import { type RebuildRecord, readRebuilds, storeRebuild } from './rebuild-record.js'
import { progressOf } from './status.js'
import { swap } from './swap.js'
import type { RebuildRequest } from './unit.js'

const LOOK_MS = 100

/** Reads the imports that the log undoes and that some table still contains. */
export async function unfinishedImportUndos(
  store: Store
): Promise<{ readonly importId: string; readonly topic: string }[]> {
  const undone = await (await storeAt('reads', store, projections)).do(readRetractions)
  const done = new Set(
    (await readRebuilds(store)).filter(({ state }) => state === 'dropped').map(({ retracts }) => retracts)
  )
  return undone.filter(({ importId }) => !done.has(importId))
}

/** Undoes imports by a rebuild of all projections of the topic; its swap and its end need no operator. */
export class ImportUndo implements ImportUndos {
  readonly #context: RebuildContext
  readonly #fillers: Fillers
  readonly #queue: OperationQueue

  constructor(context: RebuildContext, { fillers, queue }: { fillers: Fillers; queue: OperationQueue }) {
    this.#context = context
    this.#fillers = fillers
    this.#queue = queue
  }

  async undo(
    importId: string,
    topicName: string,
    onProgress: (progress: RebuildStatus['progress']) => void
  ): Promise<void> {
    const { store, signal } = this.#context
    const first = this.#firstOf(topicName)
    const record = await this.#queue.run(async () => {
      const begun = await this.#begun(importId)
      if (begun !== undefined) return begun
      try {
        // While no step runs: a retry of dead letters may have begun before the import was undone.
        return await beginRebuild(this.#context, takingBack(first, importId), async () => {
          const live = await liveOf(this.#context)
          await live.store.do(deleteImports, eventTableName(first.from), [importId])
        })
      } catch (error) {
        // Another process may have begun it meanwhile.
        const byAnother = await this.#begun(importId)
        if (byAnother === undefined) throw error
        return byAnother
      }
    })
    this.#fillers.wake()
    try {
      for (;;) {
        signal.throwIfAborted()
        const now = (await readRebuilds(store)).find(({ id }) => id === record.id) ?? record
        if (now.state === 'filling') onProgress(await progressOf(this.#context, this.#fillers, now))
        else if (now.state === 'filled') await this.#whileStill(now, () => swap(this.#context, now, 'swapping'))
        // The former tables contain the import: no rollback.
        else if (now.state === 'swapped')
          await this.#whileStill(now, async () => {
            await storeRebuild(store, now, { state: 'dropped' })
            await dropLeftovers(this.#context)
          })
        else if (now.state === 'dropped') break
        else if (now.state !== 'swapping') throw cannotEnd(now, importId)
        await pause(LOOK_MS, signal)
      }
    } finally {
      // The end may be stored, also if it is not read again.
      this.#queue.dropLeftovers()
    }
  }

  async requireUndoable(importId: string, topicName: string): Promise<void> {
    const request = takingBack(this.#firstOf(topicName), importId)
    // In the queue: a process has one sample at a time.
    await this.#queue.run(async () => {
      if ((await this.#begun(importId)) === undefined) await planWithoutObstacles(this.#context, request)
    })
  }

  async unfinishedImportUndos(): Promise<{ readonly importId: string; readonly topic: string }[]> {
    return await unfinishedImportUndos(this.#context.store)
  }

  async #begun(importId: string): Promise<RebuildRecord | undefined> {
    const records = await readRebuilds(this.#context.store)
    return records.find(({ retracts, state }) => retracts === importId && state !== 'cancelled')
  }

  #firstOf(topicName: string): Projection {
    const first = this.#context.projections.find(({ from }) => from.name === topicName)
    if (first !== undefined) return first
    throw new RebuildRefused(`There is no topic ${JSON.stringify(topicName)}.`, { isUsage: true })
  }

  /** Runs work on a rebuild in the queue, unless its state has changed. */
  async #whileStill(record: RebuildRecord, work: () => Promise<unknown>): Promise<void> {
    await this.#queue.run(async () => {
      const now = (await readRebuilds(this.#context.store)).find(({ id }) => id === record.id)
      if (now?.state === record.state) await work()
    })
  }
}

function takingBack({ name }: Projection, importId: string): RebuildRequest {
  return { projection: name, until: null, isFromLog: false, retracts: importId }
}

function cannotEnd({ id, projection, state, reason }: RebuildRecord, importId: string): RebuildRefused {
  const why = reason === null ? '' : ` (${reason})`
  const way = state === 'cancelled' ? '' : ` gamenet rebuild resume ${projection} continues it.`
  return new RebuildRefused(`Rebuild ${id}, which undoes import ${importId}, is ${state}${why}.${way}`)
}
