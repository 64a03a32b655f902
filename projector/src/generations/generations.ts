import { createHash } from 'node:crypto'
import { projectionCheckpoint, topics } from '@gamenet/schemas'
import { importRetraction } from '../projections/import-retraction.js'
import {
  eventOwner,
  type FilledGeneration,
  type Owner,
  type Pointers,
  readFilled,
  readPointers,
  type Statements,
  storeFilled
} from '../store/generation.js'
import { readRetractedImports } from '../store/import.js'
import type { Store, TableNames } from '../store/operation.js'
import { type Projection, tablesOf, withDependents } from '../store/projection.js'

const hashes = new WeakMap<Projection, string>()

/** Returns the version and the hash of a projection's statements: of everything that determines its rows. */
export function statementsOf(projection: Projection): Statements {
  const { version = 1, from, touches: _touches, voids: _voids, ...rest } = projection
  let hash = hashes.get(projection)
  if (hash === undefined) {
    const text = JSON.stringify({ ...rest, from: from.name }, withSingleSpaces)
    hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
    hashes.set(projection, hash)
  }
  return { version, hash }
}

function withSingleSpaces(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll(/\s+/g, ' ').trim() : value
}

/** Other statements than this program's fill tables: `outdated` if they are of an earlier version. */
export type Unlike = { readonly isOutdated: boolean; readonly reason: string }

/** Why no step runs. */
export type Idle = { readonly state: 'outdated' | 'failing' | 'damaged'; readonly reason: string }

/** Returns how the statements that fill a projection's tables differ from this program's; undefined if they do not. */
export function unlike(projection: Projection, filledBy: Statements): Unlike | undefined {
  const { name } = projection
  const own = statementsOf(projection)
  if (own.version === filledBy.version && own.hash === filledBy.hash) return undefined
  const filled = `version ${filledBy.version} of the statements of ${name} fills its tables`
  if (filledBy.version < own.version)
    return { isOutdated: true, reason: `${filled}; a rebuild by version ${own.version} replaces them` }
  const program =
    filledBy.version > own.version
      ? `this program has version ${own.version}. Start the newer program`
      : `this program has other ones of that version (${own.hash}, not ${filledBy.hash}). Start the program that ` +
        'has them'
  return { isOutdated: false, reason: `${filled}, and ${program}` }
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

/** Returns all event tables and read tables, by the names in statements. */
export function dataTables(projections: readonly Projection[]): readonly string[] {
  return ownersOf(projections).flatMap(({ tables }) => tables)
}

/** The generations that a pass works with, by one read of the pointers. */
export type Current = {
  readonly pointers: Pointers
  /** The projections that steps run, in the order of the program's. */
  readonly projections: readonly Projection[]
  /**
   * The others: other statements fill their tables, or those of a projection whose tables they read; or these are
   * damaged, and steps that compute whole buckets would lack rows. Steps write nothing into these, so that processes of
   * the program that fills them continue until a swap.
   */
  readonly idle: ReadonlyMap<Projection, Idle>
  readonly owners: readonly Owner[]
  /** The names of the generations that steps write. */
  readonly names: TableNames
}

/** The generations that steps write, and which of them this program's statements fill. */
export class Generations {
  readonly #store: Store
  readonly #projections: readonly Projection[]
  readonly #isDamaged: (name: string) => boolean
  /** What fills a generation never changes: by `projection/generation`. */
  #filled: ReadonlyMap<string, Statements> = new Map()

  constructor(store: Store, projections: readonly Projection[], isDamaged: (name: string) => boolean) {
    this.#store = store
    this.#projections = projections
    this.#isDamaged = isDamaged
  }

  /** Reads the pointers. */
  async current(): Promise<Current> {
    const pointers = await this.#store.do(readPointers)
    const generationOf = (each: Projection) => pointers.of(ownerOf(each)).writes
    await this.#know(this.#projections.map((each) => filledByOwn(each, generationOf(each))))
    const idle = new Map<Projection, Idle>()
    for (const each of this.#projections) {
      const filledBy = this.#filled.get(keyOf({ projection: each.name, generation: generationOf(each) }))
      const found = filledBy && unlike(each, filledBy)
      if (found === undefined) continue
      const { isOutdated, reason } = found
      for (const dependent of withDependents(this.#projections, new Set([each.name])))
        if (dependent === each || !idle.has(dependent))
          idle.set(dependent, { state: isOutdated ? 'outdated' : 'failing', reason })
    }
    const owners = ownersOf(this.#projections)
    const names = pointers.names('writes', owners)
    for (const each of this.#projections) {
      if (!tablesOf(each).some((table) => this.#isDamaged(names.get(table) ?? table))) continue
      idle.set(each, { state: 'damaged', reason: 'its tables, or those that it reads, are damaged' })
    }
    const projections = this.#projections.filter((each) => !idle.has(each))
    return { pointers, projections, idle, owners, names }
  }

  /**
   * Reads what fills these generations. One without a row is a first one, or its row was lost with a damaged part: this
   * program fills it. If programs that start at once store different rows, the lowest version counts; the others
   * rebuild.
   */
  async #know(generations: readonly FilledGeneration[]): Promise<void> {
    if (generations.every((each) => this.#filled.has(keyOf(each)))) return
    const read = async () => new Map((await this.#store.do(readFilled)).map((each) => [keyOf(each), each]))
    const stored = await read()
    const begun = generations.filter((each) => !stored.has(keyOf(each)))
    if (begun.length > 0) await this.#store.do(storeFilled, begun)
    this.#filled = begun.length > 0 ? await read() : stored
  }
}

/** Returns a generation that this program's statements fill. */
export function filledByOwn(projection: Projection, generation: number): FilledGeneration {
  return { projection: projection.name, generation, ...statementsOf(projection) }
}

function keyOf({ projection, generation }: Pick<FilledGeneration, 'projection' | 'generation'>): string {
  return `${projection}/${generation}`
}

/** Returns why this program must not use the tables: a newer one fills some, or one with others of the same version. */
export async function foreignStatements(store: Store, projections: readonly Projection[]): Promise<string | undefined> {
  const pointers = await store.do(readPointers)
  const filled = new Map((await store.do(readFilled)).map((each) => [keyOf(each), each]))
  for (const each of projections) {
    const { writes, reads } = pointers.of(ownerOf(each))
    for (const generation of [reads, writes]) {
      const filledBy = filled.get(keyOf({ projection: each.name, generation }))
      const found = filledBy && unlike(each, filledBy)
      if (found?.isOutdated === false) return found.reason
    }
  }
  return undefined
}

/**
 * Reads the ids of a topic's undone imports that answers show. An undo deletes the import's events after answers show
 * it; the generation that a swap has begun to write may lack it.
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
