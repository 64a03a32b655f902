import { projectionCheckpoint } from '@gamenet/schemas'
import { type KnownBatch, readKnownBatches, readLatePositions, storeConsumed } from '../store/late-batch.js'
import type { Store } from '../store/operation.js'
import type { Projection } from '../store/projection.js'
import { type Range, rangeOf } from '../store/range.js'

/** Returns the events of a batch as a range. */
export async function readLateRange(store: Store, id: string): Promise<Range> {
  return rangeOf(await store.do(readLatePositions, id))
}

/** The pending late batches of this process's projections. */
export class LateBatches {
  readonly #consumedHere = new Map<string, Set<string>>()
  #pending: readonly KnownBatch[] = []

  /** Clears the state, when steps begin to write other generations. */
  clear(): void {
    this.#pending = []
    this.#consumedHere.clear()
  }

  /** Reads the batches that the generations of this view have not consumed. */
  async refresh(store: Store, projections: readonly Projection[]): Promise<void> {
    const consumers = new Map<string, string[]>()
    for (const { name, from } of projections)
      consumers.set(from.name, [...(consumers.get(from.name) ?? []), projectionCheckpoint(name)])
    this.#pending = await store.do(readKnownBatches, consumers)
  }

  /**
   * Returns the next batch of a projection: the oldest that it has not consumed and that its preceding projection has
   * consumed, or has just computed (`computed`, batches by projection).
   */
  next({ name, from, after }: Projection, computed: ReadonlyMap<string, string>): string | undefined {
    const isLeft = (of: string, batch: KnownBatch) =>
      this.#consumedHere.get(of)?.has(batch.id) !== true &&
      (batch.isRecent || !batch.consumers.includes(projectionCheckpoint(of)))
    return this.#pending.find(
      (batch) =>
        batch.topic === from.name &&
        isLeft(name, batch) &&
        (after === undefined || computed.get(after) === batch.id || !isLeft(after, batch))
    )?.id
  }

  /** Records that projections have consumed batches. */
  async store(store: Store, taken: readonly { readonly projection: string; readonly id: string }[]): Promise<void> {
    if (taken.length === 0) return
    await store.do(
      storeConsumed,
      taken.map(({ projection, id }) => ({ id, consumer: projectionCheckpoint(projection) }))
    )
    for (const { projection, id } of taken) {
      const ids = this.#consumedHere.get(projection) ?? new Set()
      this.#consumedHere.set(projection, ids.add(id))
    }
  }
}
