import { CHANGE_OVERLAP_VERSIONS, INSTANTS_END_MS } from '@gamenet/schemas'
import type { Tables } from '../store/tables.js'
import { type Projection, TOUCHED_KEYS_MAX } from './projection.js'

/** What the events of a range are about: keys with their first and last instant, `*` alone when they are too many. */
export type Touched = {
  readonly events: number
  readonly keys: readonly { readonly key: string; readonly firstMs: number; readonly lastMs: number }[]
}

type Change = { readonly projection: Projection; readonly touched: Touched }
type ChangeRow = readonly (number | string)[]

const CHANGE_COLUMNS = ['version', 'projection', 'key', 'from_ms', 'to_ms'] as const

/** Announces to readers, in the table `data_change`, which keys and buckets have new rows. */
export class DataChanges {
  readonly #tables: Tables
  readonly #isShared: boolean
  #version: number | undefined

  /** @param isShared true where other processes announce changes too */
  constructor(tables: Tables, isShared: boolean) {
    this.#tables = tables
    this.#isShared = isShared
  }

  /** Announces the changes of steps. Their rows are stored before. */
  async announce(changes: readonly Change[]): Promise<void> {
    await this.#store((version) => changes.flatMap((change) => rowsOf(version, change)))
  }

  /** Announces that everything of these projections may have changed. */
  async announceAll(projections: readonly string[]): Promise<void> {
    await this.#store((version) => projections.map((name) => [version, name, '*', 0, INSTANTS_END_MS]))
  }

  /**
   * Stores changes with a version above all visible ones: an answer that was computed from older rows has a lower version. The clock
   * of another process may be ahead: a change with a version far above this one that became visible just before it would make readers
   * overlook this one. It is then announced again above that version.
   */
  async #store(changesAt: (version: number) => readonly ChangeRow[]): Promise<void> {
    for (;;) {
      const newest = this.#version === undefined || this.#isShared ? await newestVersion(this.#tables) : this.#version
      const version = Math.max(newest + 1, Date.now() * 1000)
      // Kept before the insert, whose answer may be lost: the next version is above this one even if the clock goes back.
      this.#version = version
      const lines = changesAt(version).map((values) => JSON.stringify(values))
      await this.#tables.insert('data_change', CHANGE_COLUMNS, new TextEncoder().encode(`${lines.join('\n')}\n`))
      if (!this.#isShared || (await newestVersion(this.#tables)) <= version + CHANGE_OVERLAP_VERSIONS / 2) return
    }
  }
}

/** The touched keys in the answer of `touchedStatement`. */
export function touchedOf(row: Record<string, unknown> | undefined): Touched {
  const keys = (row?.keys ?? []) as readonly (readonly [string, number, number])[]
  return {
    events: Number(row?.events ?? 0),
    keys:
      keys.length > TOUCHED_KEYS_MAX
        ? [{ key: '*', firstMs: Number(row?.first_ms), lastMs: Number(row?.last_ms) }]
        : keys.map(([key, firstMs, lastMs]) => ({ key, firstMs, lastMs }))
  }
}

/** The `data_change` rows of a step: its keys, each with the touched buckets, half-open. */
function rowsOf(version: number, { projection, touched }: Change): ChangeRow[] {
  const { bucketMs, reachMs = 0, isLasting } = projection.touches
  return touched.keys.map(({ key, firstMs, lastMs }) => {
    const fromMs = Math.max(0, Math.floor(firstMs / bucketMs) * bucketMs - reachMs)
    const toMs = isLasting === true ? INSTANTS_END_MS : Math.floor(lastMs / bucketMs) * bucketMs + bucketMs + reachMs
    return [version, projection.name, key, fromMs, toMs]
  })
}

async function newestVersion(tables: Tables): Promise<number> {
  const [row] = await tables.rows('SELECT max(d.version) AS version FROM data_change AS d')
  return Number(row?.version ?? 0)
}
