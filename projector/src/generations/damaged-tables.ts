import { EventEmitter, once } from 'node:events'
import { eventTableName } from '../events/event-table.js'
import { readBrokenParts, readDamage, storeDamage } from '../store/damage.js'
import { type Pointers, readPointers } from '../store/generation.js'
import type { Store } from '../store/operation.js'
import { type Projection, tablesOf, withDependents } from '../store/projection.js'
import { ownersOf } from './generations.js'

/*
 * damaged   a generation of a table whose rows may be missing or wrong. Answers read neither it nor the tables that
 *           are computed from it, and no step writes these. The record is durable and has no end: a repair fills
 *           another generation, and no generation's number is used twice
 * gone      positions that neither the log nor the tables have after a repair
 */

/** A damaged table that steps write or answers read: by the names of statements and of the engine. */
export type DamagedTable = {
  readonly table: string
  readonly name: string
  readonly reason: string
  /** Why it is not repaired; null while it is. */
  readonly left: string | null
}

/**
 * The damaged generations of an installation with one process. They are in memory too: each request asks for them
 * before it reads a table, and a disk on which nothing can be recorded is where damage is found.
 */
export class DamagedTables {
  readonly #store: Store
  readonly #projections: readonly Projection[]
  /** The reasons, by the engine's names of damaged tables. */
  readonly #reasons = new Map<string, string>()
  /** Those whose record failed. */
  readonly #unrecorded = new Set<string>()
  /** The same tables, and those that are computed from them. */
  readonly #tables = new Set<string>()
  readonly #gone = new Map<string, string>()
  readonly #left = new Map<string, string>()
  readonly #emitter = new EventEmitter()
  #marks = 0

  constructor(store: Store, projections: readonly Projection[]) {
    this.#store = store
    this.#projections = projections
  }

  /** Reads what is known, and marks the tables whose parts the engine detached at its start. */
  async open(): Promise<void> {
    for (const { kind, name, reason } of await this.#store.do(readDamage))
      (kind === 'gone' ? this.#gone : this.#reasons).set(name, reason)
    const broken = [...(await this.#store.do(readBrokenParts))].filter(([table]) => table.includes('__'))
    await this.mark(broken.map(([table, parts]) => [table, `${parts} of its parts could not be read at a start`]))
  }

  /** Returns whether a table, by the engine's name, is damaged or computed from a damaged one. */
  has(name: string): boolean {
    return this.#tables.has(name)
  }

  /** Rises with each mark. */
  get marks(): number {
    return this.#marks
  }

  /** Resolves when there are other marks than `seen`, or the signal aborts. */
  async marked(seen: number, signal: AbortSignal): Promise<void> {
    if (this.#marks === seen) await once(this.#emitter, 'mark', { signal }).catch(() => undefined)
  }

  /**
   * Marks tables, by the engine's names, as damaged; durably before it resolves. If it rejects, they are marked until
   * this process ends, and recorded with the next mark.
   */
  async mark(found: readonly (readonly [name: string, reason: string])[]): Promise<void> {
    for (const [name, reason] of found) {
      if (this.#reasons.has(name)) continue
      this.#reasons.set(name, reason)
      this.#unrecorded.add(name)
    }
    // Before the record: no answer reads them from now on.
    for (const name of this.#reasons.keys()) this.#tables.add(name)
    this.#marks += 1
    this.#emitter.emit('mark')
    const pointers = await this.#store.do(readPointers)
    for (const name of computedFrom(this.#reasons, pointers, this.#projections)) this.#tables.add(name)
    const names = [...this.#unrecorded]
    if (names.length === 0) return
    const records = names.map((name) => ({ kind: 'damaged' as const, name, reason: this.#reasons.get(name) ?? '' }))
    await this.#store.do(storeDamage, records)
    for (const name of names) this.#unrecorded.delete(name)
  }

  /** Marks the generations of tables that answers read, by the names of statements. */
  async markServing(found: readonly (readonly [table: string, reason: string])[]): Promise<void> {
    const { serving } = await this.#store.do(readPointers)
    await this.mark(found.map(([table, reason]) => [serving.nameOf(table), reason]))
  }

  /** Records positions that neither the log nor the tables have, by the name of their partition. */
  async lose(found: readonly (readonly [partition: string, sentence: string])[]): Promise<void> {
    const fresh = found.filter(([partition]) => !this.#gone.has(partition))
    if (fresh.length === 0) return
    await this.#store.do(
      storeDamage,
      fresh.map(([name, reason]) => ({ kind: 'gone', name, reason }))
    )
    for (const [partition, sentence] of fresh) this.#gone.set(partition, sentence)
  }

  /** Records in memory why a table is not repaired; null: it is. */
  leave(name: string, reason: string | null): void {
    if (reason === null) this.#left.delete(name)
    else this.#left.set(name, reason)
  }

  /** Returns the sentences about positions that are gone. */
  get gone(): readonly string[] {
    return [...this.#gone.values()]
  }

  /** Reads the damaged tables that steps write or answers read. */
  async inUse(): Promise<DamagedTable[]> {
    if (this.#reasons.size === 0) return []
    const pointers = await this.#store.do(readPointers)
    const owners = ownersOf(this.#projections)
    const used = new Map(
      (['reads', 'writes'] as const).flatMap((side) =>
        [...pointers.names(side, owners)].map(([table, name]) => [name, table] as const)
      )
    )
    return [...this.#reasons].flatMap(([name, reason]) => {
      const table = used.get(name)
      return table === undefined ? [] : [{ table, name, reason, left: this.#left.get(name) ?? null }]
    })
  }
}

/** Returns the engine's names of the tables that are computed from damaged ones, directly or not. */
function computedFrom(
  damaged: ReadonlyMap<string, unknown>,
  pointers: Pointers,
  projections: readonly Projection[]
): string[] {
  const owners = ownersOf(projections)
  return (['reads', 'writes'] as const).flatMap((side) => {
    const names = pointers.names(side, owners)
    const isDamaged = (table: string) => damaged.has(names.get(table) ?? table)
    const touched = projections.filter((each) => [eventTableName(each.from), ...tablesOf(each)].some(isDamaged))
    const all = withDependents(projections, new Set(touched.map(({ name }) => name)))
    return all.flatMap(tablesOf).map((table) => names.get(table) ?? table)
  })
}
