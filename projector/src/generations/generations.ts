import { projectionCheckpoint, type Topic, topic, topics } from '@gamenet/schemas'
import { z } from 'zod'
import { importRetraction } from '../projections/import-retraction.js'
import {
  type Definition,
  eventOwner,
  type Owner,
  Pointers,
  readDefinitions,
  readPointers,
  storeDefinitions
} from '../store/generation.js'
import { readRetractedImports } from '../store/import.js'
import type { Store, TableNames } from '../store/operation.js'
import { type Projection, tablesOf } from '../store/projection.js'
import type { PassLock } from './pass-lock.js'

/** A projection as text: everything that determines its rows. */
export function definitionOf({ from, ...rest }: Projection): string {
  return JSON.stringify({ ...rest, from: from.name }, withSingleSpaces)
}

/**
 * Returns the projection of a stored definition. If another program stored it with a topic that this one lacks, it receives no further
 * events, and counts as outdated until a rebuild by this program's statements is swapped in.
 */
export function projectionOf(definition: string): Projection {
  const { from: name, ...rest } = JSON.parse(definition) as Omit<Projection, 'from'> & { from: string }
  return { ...rest, from: topics.find((topic) => topic.name === name) ?? unknownTopic(name) } as Projection
}

/** A topic that accepts no event. */
function unknownTopic(name: string): Topic {
  return topic({ name, event: z.never(), key: () => '', instant: () => '' })
}

function withSingleSpaces(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll(/\s+/g, ' ').trim() : value
}

/** The owner of a projection's tables. */
export function ownerOf(projection: Projection): Owner {
  return { owner: projectionCheckpoint(projection.name), tables: tablesOf(projection) }
}

/** Every table that has generations. */
export function ownersOf(projections: readonly Projection[]): Owner[] {
  return [...new Set([...topics, ...projections.map(({ from }) => from)])]
    .map(eventOwner)
    .concat(projections.map(ownerOf))
}

/** The generations that a pass works with, by one read of the pointers. */
export type Current = {
  readonly pointers: Pointers
  /** The projections that steps run, in the order of this program's; without those that are not registered yet. */
  readonly projections: readonly Projection[]
  readonly owners: readonly Owner[]
  /** The names of the generations that steps write. */
  readonly names: TableNames
}

/**
 * The generations of tables, with the statements of each. A program whose projection was changed continues with the statements of
 * the existing table, until a rebuild by the new ones is swapped in. A new projection begins generation 0.
 */
export class Generations {
  readonly #store: Store
  readonly #projections: readonly Projection[]
  /** Definitions never change: by `projection/generation`. */
  #definitions = new Map<string, Projection>()
  #newest: readonly Projection[] = []
  /** As of the last read. */
  #pointers = new Pointers([], 0)
  #isRegistered = false

  constructor(store: Store, projections: readonly Projection[]) {
    this.#store = store
    this.#projections = projections
  }

  /**
   * Registers the projections of this program that have no first generation yet, and those that {@link current} found without a definition.
   * Call it before each pass. Exclusive: of two programs that start at once, the first one's statements count. Rejects when no exclusive lock
   * is possible; then the others continue.
   */
  async register({ exclusive }: Pick<PassLock, 'exclusive'>): Promise<void> {
    if (this.#isRegistered) return
    if ((await this.#unknown()).length > 0) {
      await exclusive(async (check) => {
        const unknown = await this.#unknown()
        await check()
        if (unknown.length > 0) await this.#store.do(storeDefinitions, unknown)
      })
    }
    // Read again: an earlier attempt may have stored definitions although its acknowledgement was lost.
    this.#definitions = new Map()
    this.#isRegistered = true
  }

  /** Reads the pointers. */
  async current(): Promise<Current> {
    const pointers = await this.#store.do(readPointers)
    const generation = (each: Projection) => `${each.name}/${pointers.of(ownerOf(each)).writes}`
    if (!this.#projections.every((each) => this.#definitions.has(generation(each)))) await this.#readDefinitions()
    const projections = this.#projections.flatMap((each) => this.#definitions.get(generation(each)) ?? [])
    this.#newest = projections
    this.#pointers = pointers
    // The definition of a written generation was lost with a damaged part: the next registration stores this program's.
    if (projections.length < this.#projections.length) this.#isRegistered = false
    const owners = ownersOf([...this.#projections, ...projections])
    return { pointers, projections, owners, names: pointers.names('writes', owners) }
  }

  /** Whether the table is filled by other statements than this program's, as of the last read. */
  isOutdated(name: string): boolean {
    const running = this.#newest.find((each) => each.name === name)
    return running !== undefined && !this.#projections.includes(running)
  }

  async #readDefinitions(): Promise<void> {
    const own = new Map(this.#projections.map((each) => [each.name, each]))
    const definitions = new Map<string, Projection>()
    for (const { projection, generation, definition } of await this.#store.do(readDefinitions)) {
      const program = own.get(projection)
      if (program === undefined) continue
      const stored = projectionOf(definition)
      definitions.set(`${projection}/${generation}`, definitionOf(stored) === definitionOf(program) ? program : stored)
    }
    this.#definitions = definitions
  }

  /** This program's definitions of generations that have none: of first ones, and of those that steps write. */
  async #unknown(): Promise<readonly Definition[]> {
    // Compared one by one: a rebuild that began earlier has stored the definition of its own generation only.
    const stored = await this.#store.do(readDefinitions)
    const known = new Set(stored.map(({ projection, generation }) => `${projection}/${generation}`))
    return this.#projections.flatMap((own) =>
      [...new Set([0, this.#pointers.of(ownerOf(own)).writes])]
        .filter((generation) => !known.has(`${own.name}/${generation}`))
        .map((generation) => ({ projection: own.name, generation, definition: definitionOf(own) }))
    )
  }
}

/**
 * Reads the ids of a topic's undone imports that answers show. An undo deletes the import's events after answers show it; the generation
 * that a swap has begun to write may lack it.
 */
export async function readUndone(store: Store, pointers: Pointers, topic: string): Promise<string[]> {
  return await store
    .with({ names: pointers.names('reads', [ownerOf(importRetraction)]) })
    .do(readRetractedImports, topic)
}

/** The store with the generations that steps write now, or with those that answers read. */
export async function storeAt(
  side: 'writes' | 'reads',
  store: Store,
  projections: readonly Projection[]
): Promise<Store> {
  const pointers = await store.do(readPointers)
  return store.with({ names: pointers.names(side, ownersOf(projections)) })
}
