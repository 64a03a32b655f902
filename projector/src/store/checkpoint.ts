import { linesOf, type NamedTables, nameIn, operation, type Store, type TableNames } from './operation.js'

/** The position of one reader in one partition: `next` is the first offset that it has not consumed. */
export type Progress = { readonly epoch: number; readonly partition: number; readonly next: number }

/** A checkpoint with the name of its reader: `loadCheckpoint` and `projectionCheckpoint` of the schemas. */
export type Checkpoint = Progress & { readonly name: string }

/**
 * Reads the checkpoints of all readers in this view of the store; those of other generations have other names. The
 * highest `next` of a partition counts, merged or not.
 */
export const readCheckpoints = operation('reads checkpoints', async (tables): Promise<Checkpoint[]> => {
  const rows = await tables.rows(
    `SELECT c.name AS name, c.epoch AS epoch, c.partition AS partition, max(c.next) AS next
     FROM checkpoint AS c GROUP BY c.name, c.epoch, c.partition`
  )
  return inView(tables.nameOf, rows.map(checkpointOf))
})

/**
 * Stores checkpoints, all or none. The table keeps the highest `next`, so storing an older one again changes nothing.
 */
export const storeCheckpoints = operation('stores checkpoints', async (tables, checkpoints: readonly Checkpoint[]) => {
  const rows = checkpoints.map(({ name, epoch, partition, next }) => [tables.target(name), epoch, partition, next])
  await tables.insert('checkpoint', ['name', 'epoch', 'partition', 'next'], linesOf(rows))
})

/**
 * Deletes the checkpoints of readers that are no longer in use, by the engine's names in any view of the store. It does
 * not wait for the deletion, which does not happen while merges are stopped.
 */
export const discardCheckpoints = operation('discards checkpoints', async (tables, names: readonly string[]) => {
  await tables.execute(`ALTER TABLE checkpoint DELETE WHERE name IN (${names.map((name) => `'${name}'`).join(', ')})`)
})

/** Reads the instants, in ms since 1970, at which the newest checkpoints were stored; by `name/epoch/partition`. */
export const readCheckpointInstants = operation('reads instants of checkpoints', async (tables) => {
  const rows = await tables.rows(
    `SELECT c.name AS name, c.epoch AS epoch, c.partition AS partition,
       toUnixTimestamp64Milli(argMax(c.updated_at, c.next)) AS atMs
     FROM checkpoint AS c GROUP BY c.name, c.epoch, c.partition`
  )
  return new Map(
    rows.map((row) => [`${tables.nameOf(String(row.name))}/${row.epoch}/${row.partition}`, Number(row.atMs)])
  )
})

function checkpointOf(row: Record<string, unknown>): Checkpoint {
  return {
    name: String(row.name),
    epoch: Number(row.epoch),
    partition: Number(row.partition),
    next: Number(row.next)
  }
}

function inView(nameOf: NamedTables['nameOf'], checkpoints: readonly Checkpoint[]): Checkpoint[] {
  return checkpoints.flatMap((each) => {
    const name = nameOf(each.name)
    return name === undefined ? [] : [{ ...each, name }]
  })
}

/** Checkpoints by name. */
export class Checkpoints {
  readonly #byName = new Map<string, Map<string, Progress>>()

  static async read(store: Store): Promise<Checkpoints> {
    return Checkpoints.of(await store.do(readCheckpoints))
  }

  /** @param names a view for checkpoints that were read without one */
  static of(all: readonly Checkpoint[], names: TableNames = new Map()): Checkpoints {
    const checkpoints = new Checkpoints()
    for (const each of inView(nameIn(names), all)) checkpoints.advance(each)
    return checkpoints
  }

  /** Adds a checkpoint, unless a higher one of its partition is known. */
  advance({ name, epoch, partition, next }: Checkpoint): void {
    const partitions = this.#byName.get(name) ?? new Map<string, Progress>()
    this.#byName.set(name, partitions)
    const key = `${epoch}/${partition}`
    if (next >= (partitions.get(key)?.next ?? 0)) partitions.set(key, { epoch, partition, next })
  }

  /** Returns the first offset not yet consumed in a partition; 0 if none was. */
  next(name: string, epoch: number, partition: number): number {
    return this.#byName.get(name)?.get(`${epoch}/${partition}`)?.next ?? 0
  }

  /** Returns the partitions of one name, by epoch and partition. */
  of(name: string): Progress[] {
    const partitions = [...(this.#byName.get(name)?.values() ?? [])]
    return partitions.sort((a, b) => a.epoch - b.epoch || a.partition - b.partition)
  }
}

/** Reads the checkpoints of some readers in this view of the store, as {@link readCheckpoints} does. */
export const readCheckpointsOf = operation(
  'reads checkpoints of some readers',
  async (tables, names: readonly string[]): Promise<Checkpoint[]> => {
    const rows = await tables.rows(
      `SELECT c.name AS name, c.epoch AS epoch, c.partition AS partition, max(c.next) AS next
       FROM checkpoint AS c WHERE c.name IN {names: Array(String)} GROUP BY c.name, c.epoch, c.partition`,
      { names: names.map((name) => tables.source(name)) }
    )
    return inView(tables.nameOf, rows.map(checkpointOf))
  }
)
