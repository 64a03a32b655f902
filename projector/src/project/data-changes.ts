import { CHANGE_OVERLAP_VERSIONS, INSTANTS_END_MS } from '@gamenet/schemas'
import { type DataChange, readNewestVersion, storeChanges } from '../store/data-change.js'
import type { Store } from '../store/operation.js'
import type { Projection } from '../store/projection.js'
import type { Touched } from '../store/step.js'

type Change = { readonly projection: Projection; readonly touched: Touched }

/** Announces to readers, in the table `data_change`, which keys and buckets have new rows. */
export class DataChanges {
  readonly #store: Store
  readonly #isShared: boolean
  #version: number | undefined

  /** @param isShared true if other processes announce changes too */
  constructor(store: Store, isShared: boolean) {
    this.#store = store
    this.#isShared = isShared
  }

  /** Announces the changes of steps, after their rows are stored. */
  async announce(changes: readonly Change[]): Promise<void> {
    await this.#announce(changes.flatMap(changesOf))
  }

  /**
   * Announces that everything of these projections, or of one key of them, may have changed, above a version whose rows
   * may have been deleted.
   */
  async announceChanged(projections: readonly string[], { above = 0, key = '*' } = {}): Promise<void> {
    this.#version = Math.max(this.#version ?? 0, above)
    await this.#announce(projections.map((projection) => ({ projection, key, fromMs: 0, toMs: INSTANTS_END_MS })))
  }

  /**
   * Stores changes with a version above all visible ones: an answer computed from older rows has a lower version. The
   * clock of another process may be ahead: after a change of that process with a far higher version, readers would
   * overlook this one, so it is announced again above that version.
   */
  async #announce(changes: readonly DataChange[]): Promise<void> {
    const newestVersion = () => this.#store.do(readNewestVersion)
    for (;;) {
      const own = this.#version ?? 0
      const newest = own === 0 || this.#isShared ? await newestVersion() : own
      const version = Math.max(own + 1, newest + 1, Date.now() * 1000)
      // Stored before the insert, whose answer may be lost: the next version is higher even if the clock goes back.
      this.#version = version
      await this.#store.do(storeChanges, version, changes)
      if (!this.#isShared || (await newestVersion()) <= version + CHANGE_OVERLAP_VERSIONS / 2) return
    }
  }
}

/** Announces that everything of these projections may have changed, in a version above all others. */
export async function announceAllChanged(store: Store, projections: readonly string[], above = 0): Promise<void> {
  await new DataChanges(store, true).announceChanged(projections, { above })
}

/** Returns the changes of a step: its keys, each with the touched buckets, half-open. */
function changesOf({ projection, touched }: Change): DataChange[] {
  const { bucketMs, reachMs = 0, isLasting } = projection.touches
  return touched.keys.map(({ key, firstMs, lastMs }) => ({
    projection: projection.name,
    key,
    fromMs: Math.max(0, Math.floor(firstMs / bucketMs) * bucketMs - reachMs),
    toMs: isLasting === true ? INSTANTS_END_MS : Math.floor(lastMs / bucketMs) * bucketMs + bucketMs + reachMs
  }))
}
