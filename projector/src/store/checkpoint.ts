import type { Tables } from './tables.js'

/** How far one reader has come in one partition: `next` is the first offset that it has not taken. */
export type Progress = { readonly epoch: number; readonly partition: number; readonly next: number }

/** A checkpoint with the name of whose it is: `loadCheckpoint` and `projectionCheckpoint` of the schemas. */
export type Checkpoint = Progress & { readonly name: string }

/** Checkpoints by name. The highest `next` of a partition counts, merged or not. */
export class Checkpoints {
  readonly #byName = new Map<string, Map<string, Progress>>()

  static async read(tables: Tables): Promise<Checkpoints> {
    const rows = await tables.rows(
      `SELECT c.name AS name, c.epoch AS epoch, c.partition AS partition, max(c.next) AS next
       FROM checkpoint AS c GROUP BY c.name, c.epoch, c.partition`
    )
    return Checkpoints.of(
      rows.map((row) => ({
        name: String(row.name),
        epoch: Number(row.epoch),
        partition: Number(row.partition),
        next: Number(row.next)
      }))
    )
  }

  static of(all: Iterable<Checkpoint>): Checkpoints {
    const checkpoints = new Checkpoints()
    for (const each of all) checkpoints.advance(each)
    return checkpoints
  }

  /** Takes a checkpoint in, unless a higher one of its partition is known. */
  advance({ name, epoch, partition, next }: Checkpoint): void {
    const partitions = this.#byName.get(name) ?? new Map<string, Progress>()
    this.#byName.set(name, partitions)
    const key = `${epoch}/${partition}`
    if (next >= (partitions.get(key)?.next ?? 0)) partitions.set(key, { epoch, partition, next })
  }

  /** First offset not yet taken in a partition; 0 where nothing was. */
  next(name: string, epoch: number, partition: number): number {
    return this.#byName.get(name)?.get(`${epoch}/${partition}`)?.next ?? 0
  }

  /** Whose there are. */
  names(): string[] {
    return [...this.#byName.keys()]
  }

  /** The partitions of one name, by epoch and partition. */
  of(name: string): Progress[] {
    const partitions = [...(this.#byName.get(name)?.values() ?? [])]
    return partitions.sort((a, b) => a.epoch - b.epoch || a.partition - b.partition)
  }
}

/** Stores checkpoints. The table keeps the highest `next`, so storing an older one again changes nothing. */
export async function storeCheckpoints(tables: Tables, checkpoints: readonly Checkpoint[]): Promise<void> {
  const lines = checkpoints.map(({ name, epoch, partition, next }) => JSON.stringify([name, epoch, partition, next]))
  await tables.insert(
    'checkpoint',
    ['name', 'epoch', 'partition', 'next'],
    new TextEncoder().encode(`${lines.join('\n')}\n`)
  )
}
