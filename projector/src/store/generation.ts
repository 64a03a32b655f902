import { generationName, loadCheckpoint, projectionCheckpoint, type ServingTables, type Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import { linesOf, type Operation, operation, type Store, type TableNames } from './operation.js'

/*
 * generation  one filling of an owner's tables, with a checkpoint of its own: `title_count__7` with
 *             `project:title-count__7`. Generation 0 is the first; a rebuild fills the generation of its own number, so
 *             no number is used twice
 * owner       a projection with its read tables, or a topic with its event table; by the name of its checkpoint
 * pointer     the generation that an owner's steps write, and the one that answers read. A swap first moves `writes`;
 *             when the generation has caught up, `reads`
 */

export type Pointer = {
  readonly owner: string
  readonly tables: readonly string[]
  readonly writes: number
  readonly reads: number
  /**
   * Counts the changes of `reads` of all owners after which any answer may differ: the count at the last one of this
   * owner. Tables that differ in the rows of one key are announced by that key.
   */
  readonly readsChanged: number
}

/** All pointers at one instant. Owners without a row are at generation 0. */
export class Pointers {
  /** Rises with every stored change. */
  readonly version: number
  readonly #byOwner: ReadonlyMap<string, Pointer>

  constructor(rows: readonly Pointer[], version: number) {
    this.version = version
    this.#byOwner = new Map(rows.map((row) => [row.owner, row]))
  }

  all(): readonly Pointer[] {
    return [...this.#byOwner.values()]
  }

  of({ owner, tables }: Owner): Pointer {
    return this.#byOwner.get(owner) ?? { owner, tables, writes: 0, reads: 0, readsChanged: 0 }
  }

  /** The highest count of changes of `reads`. */
  get readsChanged(): number {
    return Math.max(0, ...this.all().map((each) => each.readsChanged))
  }

  /** The names of the engine's tables, and of checkpoints, that steps write or that answers read. */
  names(side: 'writes' | 'reads', owners: readonly Owner[]): TableNames {
    return new Map(owners.flatMap((owner) => [...namesOf(owner, this.of(owner)[side])]))
  }

  /** The tables that answers read. */
  get serving(): ServingTables {
    const byTable = new Map(
      this.all().flatMap(({ tables, reads }) => tables.map((table) => [table, generationName(table, reads)] as const))
    )
    return {
      nameOf: (table) => byTable.get(table) ?? generationName(table, 0),
      checkpointOf: (reader) => {
        const reads = this.#byOwner.get(reader)?.reads ?? 0
        return reads === 0 ? reader : generationName(reader, reads)
      },
      counterOf: (projection) => this.#byOwner.get(projectionCheckpoint(projection))?.readsChanged ?? 0,
      counter: this.version
    }
  }
}

export type Owner = Pick<Pointer, 'owner' | 'tables'>

/** The owner of a topic's event table. */
export function eventOwner(topic: Pick<Topic, 'name'>): Owner {
  return { owner: loadCheckpoint(topic.name), tables: [eventTableName(topic)] }
}

/** Returns the names of an owner's tables, and of its checkpoint, in a generation. */
export function namesOf({ owner, tables }: Owner, generation: number): TableNames {
  const names = tables.map((table) => [table, generationName(table, generation)] as const)
  // The checkpoint of the first generation has the owner's name. It is listed too, for views that are combined with
  // others.
  return new Map([...names, [owner, generation === 0 ? owner : generationName(owner, generation)]])
}

/** Reads all pointers. */
export const readPointers = operation('reads pointers', async (tables): Promise<Pointers> => {
  const rows = await tables.rows(
    `SELECT p.owner AS owner, p.tables AS tables, p.writes AS writes, p.reads AS reads,
       p.reads_changed AS readsChanged, p.version AS version
     FROM generation_pointer AS p FINAL ORDER BY p.owner`
  )
  const pointers = rows.map((row) => ({
    owner: String(row.owner),
    tables: (row.tables as readonly unknown[]).map(String),
    writes: Number(row.writes),
    reads: Number(row.reads),
    readsChanged: Number(row.readsChanged)
  }))
  return new Pointers(pointers, Math.max(0, ...rows.map(({ version }) => Number(version))))
})

/**
 * Stores pointers, all or none, as the newest of their owners. For one writer at a time: see `RebuildSteps.exclusive`.
 */
export const storePointers = operation(
  'stores pointers',
  async (tables, version: number, pointers: readonly Pointer[]): Promise<void> => {
    const rows = pointers.map((each) => [each.owner, each.tables, each.writes, each.reads, each.readsChanged, version])
    const columns = ['owner', 'tables', 'writes', 'reads', 'reads_changed', 'version']
    await tables.insert('generation_pointer', columns, linesOf(rows))
  }
)

/**
 * Returns stores that cache the pointers until one of them stores others, for the only process that writes them. A read
 * takes 1.1 ms of ClickHouse, 4 to 8 % of a small pass or batch.
 */
export function keepingPointers(): (store: Store) => Store {
  let cached: Promise<unknown> | undefined
  const keeping = (store: Store): Store => ({
    do: async <Input extends readonly unknown[], Result>(operation: Operation<Input, Result>, ...input: Input) => {
      const isRead = (operation as unknown) === readPointers
      if (isRead && cached !== undefined) return (await cached) as Result
      const done = store.do(operation, ...input)
      if (isRead) cached = done
      try {
        return await done
      } catch (error) {
        if (cached === done) cached = undefined
        throw error
      } finally {
        // Also after a failure: they may be stored nevertheless.
        if ((operation as unknown) === storePointers) cached = undefined
      }
    },
    sync: (tables) => store.sync(tables),
    with: (view) => keeping(store.with(view))
  })
  return keeping
}

/** The statements of a projection: their version, and a hash of their text. */
export type Statements = { readonly version: number; readonly hash: string }

/** A generation of a projection's tables, with the statements that fill it. */
export type FilledGeneration = Statements & { readonly projection: string; readonly generation: number }

/** Reads what fills each generation. */
export const readFilled = operation('reads what fills generations', async (tables): Promise<FilledGeneration[]> => {
  const rows = await tables.rows(
    `SELECT s.name AS name, s.generation AS generation, min((s.version, s.hash)) AS filled_by
     FROM generation_statement AS s GROUP BY s.name, s.generation ORDER BY s.name, s.generation`
  )
  return rows.map(({ name, generation, filled_by }) => {
    const [version, hash] = filled_by as readonly [unknown, unknown]
    return {
      projection: String(name),
      generation: Number(generation),
      version: Number(version),
      hash: String(hash)
    }
  })
})

/** Stores what fills new generations, all or none. */
export const storeFilled = operation(
  'stores what fills generations',
  async (tables, generations: readonly FilledGeneration[]): Promise<void> => {
    const rows = generations.map(({ projection, generation, version, hash }) => [projection, generation, version, hash])
    await tables.insert('generation_statement', ['name', 'generation', 'version', 'hash'], linesOf(rows))
  }
)
