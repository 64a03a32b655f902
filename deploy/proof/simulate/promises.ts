import {
  type Checkpoint,
  type FilledGeneration,
  ownerOf,
  type Pointers,
  storeCheckpoints,
  storeFilled,
  storePointers
} from '@gamenet/projector/internals'
import { loadCheckpoint, projectionCheckpoint } from '@gamenet/schemas'
import { simulatedProjections } from './simulated.js'
import type { Tables } from './store.js'

const GENERATION = /__(\d+)$/

/**
 * The progress of a projection in the generation of an answer: its checkpoints and the late batches that it has
 * consumed.
 */
type Position = { readonly next: ReadonlyMap<string, number>; readonly taken: ReadonlySet<string> }

/** The positions that a process has shown, by projection. */
export type Shown = ReadonlyMap<string, Position>

/** Merges these positions with those of an answer. */
export function shownBy(shown: Shown, reads: readonly (Read & Position)[]): Shown {
  const all = new Map(shown)
  for (const { projection, next, taken } of reads) {
    const before = all.get(projection)
    const furthest = new Map(before?.next)
    for (const [partition, to] of next) furthest.set(partition, Math.max(to, furthest.get(partition) ?? 0))
    all.set(projection, { next: furthest, taken: new Set([...(before?.taken ?? []), ...taken]) })
  }
  return all
}

/** A table that an answer reads, and the name of its generation. */
export type Read = { readonly projection: string; readonly table: string; readonly name: string }

/** Checks the promises of swaps at each instant, and records broken ones. */
export class Promises {
  readonly broken: string[] = []
  readonly #tables: Tables
  readonly #pointers: Pointers[] = []
  readonly #gone = new Set<string>()
  readonly #filled = new Map<string, string>()
  /** The loaded positions when steps began to write another generation of a projection than answers read. */
  readonly #heads = new Map<string, ReadonlyMap<string, number>>()
  /** The generation by the identity of an answer. */
  readonly #identities = new Map<string, string>()

  constructor(tables: Tables) {
    this.#tables = tables
    tables.onDone = (operation, _, input) => {
      if (operation === storePointers) this.#pointersStored()
      if (operation === storeCheckpoints) this.#checkpointsStored(input[0] as readonly Checkpoint[])
      if (operation === storeFilled) this.#filledStored(input[0] as readonly FilledGeneration[])
    }
    tables.onTable = (what, name) => this.#tableChanged(what, name)
    this.#pointersStored()
  }

  /** Requires that an answer reads the generations of one instant. */
  requireOneInstant(query: string, reads: readonly Read[]): void {
    const isOf = ({ serving }: Pointers) => reads.every(({ table, name }) => serving.nameOf(table) === name)
    if (!this.#pointers.some(isOf))
      this.broken.push(`an answer to ${query} has ${reads.map(({ name }) => name).join(' and ')}`)
  }

  /** Requires that an identity stands for the same generations in all processes. */
  requireOwnIdentity(query: string, identity: string, reads: readonly Read[]): void {
    const key = `${query}: ${identity}`
    const names = reads.map(({ name }) => name).join(' and ')
    const before = this.#identities.get(key)
    if (before !== undefined && before !== names) this.broken.push(`${key} stands for ${before} and for ${names}`)
    this.#identities.set(key, names)
  }

  /** The progress of the generation of a table. */
  positionOf({ projection, name }: Read): Position {
    const [generation = ''] = GENERATION.exec(name) ?? []
    const reader = projectionCheckpoint(projection) + (generation === '__0' ? '' : generation)
    const taken = this.#tables.final('late_batch_taken').filter(({ taker }) => taker === reader)
    return { next: this.#checkpointsOf(reader), taken: new Set(taken.map(({ id }) => String(id))) }
  }

  /** Requires that an answer is not behind the positions that its process had shown when the answer began. */
  requireNotBehind(query: string, shown: Shown, reads: readonly (Read & Position)[]): void {
    for (const { projection, name, next, taken } of reads) {
      const before = shown.get(projection)
      const behind = [...(before?.next ?? [])].find(([partition, to]) => (next.get(partition) ?? 0) < to)
      const missing = [...(before?.taken ?? [])].find((id) => !taken.has(id))
      if (behind !== undefined)
        this.broken.push(`${query} is answered from ${name} at ${next.get(behind[0])}, behind ${behind.join(' at ')}`)
      if (missing !== undefined) this.broken.push(`${query} is answered from ${name} without late batch ${missing}`)
    }
  }

  #checkpointsOf(reader: string): ReadonlyMap<string, number> {
    const rows = this.#tables.final('checkpoint').filter(({ name }) => name === reader)
    return new Map(rows.map(({ epoch, partition, next }) => [`${epoch}/${partition}`, Number(next)]))
  }

  #pointersStored(): void {
    const { pointers } = this.#tables
    this.#pointers.push(pointers)
    for (const projection of simulatedProjections) {
      const { name, from } = projection
      const { writes, reads } = pointers.of(ownerOf(projection))
      if (writes === reads) this.#heads.delete(name)
      else if (!this.#heads.has(name))
        this.#heads.set(name, this.#checkpointsOf(pointers.serving.checkpointOf(loadCheckpoint(from.name))))
    }
    for (const name of this.#pointed(pointers))
      if (!this.#tables.has(name)) this.broken.push(`a pointer names ${name}, which is missing`)
  }

  /** Once steps write another generation, only steps that were already running may change the one that answers read. */
  #checkpointsStored(checkpoints: readonly Checkpoint[]): void {
    if (checkpoints.length === 0) return
    for (const [projection, heads] of this.#heads) {
      const reader = this.#tables.pointers.serving.checkpointOf(projectionCheckpoint(projection))
      const beyond = [...this.#checkpointsOf(reader)].find(([partition, next]) => next > (heads.get(partition) ?? 0))
      if (beyond !== undefined)
        this.broken.push(`${reader} is at ${beyond.join(' at ')} although steps already write another generation`)
    }
  }

  #filledStored(generations: readonly FilledGeneration[]): void {
    for (const { projection, generation, hash } of generations) {
      const name = `${projection} ${generation}`
      // The statement of a dead process may arrive after the same one of another process.
      if (this.#filled.has(name) && this.#filled.get(name) !== hash)
        this.broken.push(`generation ${name} is filled by different statements`)
      this.#filled.set(name, hash)
    }
  }

  #tableChanged(what: 'created' | 'dropped', name: string): void {
    if (!GENERATION.test(name)) return
    if (what === 'created' && this.#gone.has(name)) this.broken.push(`${name} is created twice`)
    if (what === 'created') return
    this.#gone.add(name)
    if (this.#pointed(this.#tables.pointers).includes(name))
      this.broken.push(`${name} is dropped, which a pointer names`)
  }

  #pointed(pointers: Pointers): string[] {
    return pointers.all().flatMap(({ tables, writes, reads }) => {
      return tables.flatMap((table) => [`${table}__${writes}`, `${table}__${reads}`])
    })
  }
}
