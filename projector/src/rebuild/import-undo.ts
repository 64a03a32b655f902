import { eventTableName } from '../events/event-table.js'
import { storeAt } from '../generations/generations.js'
import { projections } from '../projections/projections.js'
import { deleteImports } from '../store/event-table.js'
import { readRetractions } from '../store/import.js'
import type { Store } from '../store/operation.js'
import type { Projection } from '../store/projection.js'
import type { AutomaticRebuilds } from './automatic.js'
import { beginRebuild, planWithoutObstacles } from './begin.js'
import { liveOf, type RebuildContext } from './context.js'
import { type ImportUndos, RebuildRefused, type RebuildStatus } from './contract.js'
import type { OperationQueue } from './operation-queue.js'
import { type RebuildRecord, readRebuilds } from './rebuild-record.js'
import type { RebuildRequest } from './unit.js'

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
  readonly #automatic: AutomaticRebuilds
  readonly #queue: OperationQueue

  constructor(context: RebuildContext, { automatic, queue }: { automatic: AutomaticRebuilds; queue: OperationQueue }) {
    this.#context = context
    this.#automatic = automatic
    this.#queue = queue
  }

  async undo(
    importId: string,
    topicName: string,
    onProgress: (progress: RebuildStatus['progress']) => void
  ): Promise<void> {
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
    await this.#automatic.complete(record, onProgress)
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
}

function takingBack({ name }: Projection, importId: string): RebuildRequest {
  return { projection: name, until: null, isFromLog: false, retracts: importId, isAutomatic: true }
}
