import { type ReadTable, ReplacingTable, type Row } from './replacing-table.js'
import type { TableSet } from './table-set.js'

const LAGGING_SHARE = 0.6
export const LAG_MS_MAX = 2000

/** A table as a lagging replica has it. */
type Behind = { readonly table: ReplacingTable; readonly untilMs: number }

/** The random numbers of lags. */
type Chances = { happens(share: number): boolean; below(end: number): number }

/** Replicas of the tables: rows that one has acknowledged reach another later, table by table. */
export class Replicas {
  /** False in worlds with one server, and when all faults have ended. */
  areLagging = false
  hasBarrier = true
  readonly #tables: Pick<TableSet, 'machine' | 'has' | 'table' | 'written'>
  readonly #chances: Chances
  readonly #behind: readonly Map<string, Behind>[] = [new Map(), new Map()]

  constructor(tables: Pick<TableSet, 'machine' | 'has' | 'table' | 'written'>, chances: Chances) {
    this.#tables = tables
    this.#chances = chances
  }

  /** Returns a table as a replica has it now; undefined: one that never lags. */
  table(name: string, replica: number | undefined): ReadTable {
    const newest = this.#tables.table(name)
    const behind = replica === undefined ? undefined : this.#behind[replica]
    const lagging = behind?.get(name)
    if (lagging === undefined) return newest
    if (lagging.untilMs > this.#tables.machine.nowMs()) return lagging.table
    behind?.delete(name)
    return newest
  }

  /** Adds rows to a table by a replica; the other one may have them later. */
  insert(name: string, rows: readonly Row[], replica: number | undefined): void {
    const newest = this.#tables.written(name)
    for (const [each, behind] of this.#behind.entries()) {
      const lagging = behind.get(name)
      if (each === replica) lagging?.table.insert(rows)
      else if (this.areLagging && lagging === undefined && this.#chances.happens(LAGGING_SHARE)) {
        const table = new ReplacingTable(newest.definition)
        table.insert(newest.rows)
        behind.set(name, { table, untilMs: this.#tables.machine.nowMs() + this.#chances.below(LAG_MS_MAX) })
      }
    }
    newest.insert(rows)
  }

  /** The barrier: a replica has all rows of a table. */
  sync(name: string, replica: number | undefined): void {
    if (replica !== undefined && this.hasBarrier) this.#behind[replica]?.delete(name)
  }

  /** Changes other than inserts wait for all replicas. */
  syncAll(name: string): void {
    for (const behind of this.#behind) behind.delete(name)
  }
}
