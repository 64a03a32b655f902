import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouse, Postgres } from '@gamenet/engines'
import { errorCode } from '@gamenet/schemas'
import { z } from 'zod'

/** Bytes by part. Null if a part is not on a disk of this machine, or could not be measured. */
export const Used = z.object({ log: z.int().nullable(), tables: z.int().nullable(), writes: z.int().nullable() })
export type Used = z.infer<typeof Used>
export type UsedPart = keyof Used
export const USED_PARTS: UsedPart[] = ['log', 'tables', 'writes']

/** Unit of the blocks that `stat` returns, on every file system. */
const BLOCK_BYTES = 512

/** Location of each part: a directory of an embedded engine, a server, or neither. */
export type UsedOf = {
  readonly log: string | undefined
  readonly tables: ClickHouse['control']
  readonly writes: string | Postgres | undefined
}

/** Returns the bytes of log, tables and write side; null for a part that cannot be measured. */
export async function readUsed({ log, tables, writes }: UsedOf): Promise<Used> {
  const known = (bytes: Promise<number> | undefined) => bytes?.catch(() => null) ?? Promise.resolve(null)
  const [logBytes, tableBytes, writeBytes] = await Promise.all([
    known(log === undefined ? undefined : directoryBytes(log)),
    known(bytesOfTables(tables, 'all')),
    known(
      writes === undefined ? undefined : typeof writes === 'string' ? directoryBytes(writes) : databaseBytes(writes)
    )
  ])
  return { log: logBytes, tables: tableBytes, writes: writeBytes }
}

/** Returns the size of all tables in bytes; `all`: with merged parts, which stay on the disk for some minutes. */
export async function bytesOfTables(tables: ClickHouse['control'], parts: 'active' | 'all'): Promise<number> {
  const [row] = await tables.rows(
    `SELECT sum(p.bytes_on_disk) AS bytes FROM system.parts AS p
     WHERE p.database = currentDatabase() AND (p.active OR {isAll: Bool})`,
    { isAll: parts === 'all' }
  )
  return Number(row?.bytes)
}

async function databaseBytes(writes: Postgres): Promise<number> {
  const [row] = await writes.query<{ bytes: string }>('SELECT pg_database_size(current_database()) AS bytes')
  return Number(row?.bytes)
}

/** Returns the disk space of a directory's files. Files that vanish meanwhile count as 0. */
export async function directoryBytes(path: string): Promise<number> {
  const entries = await readdir(path, { withFileTypes: true }).catch(ignoreMissing([]))
  let bytes = 0
  for (const entry of entries) {
    const inside = join(path, entry.name)
    if (entry.isDirectory()) bytes += await directoryBytes(inside)
    else bytes += (await lstat(inside).catch(ignoreMissing({ blocks: 0 }))).blocks * BLOCK_BYTES
  }
  return bytes
}

function ignoreMissing<Value>(value: Value): (error: unknown) => Value {
  return (error) => {
    if (errorCode(error) === 'ENOENT') return value
    throw error
  }
}
