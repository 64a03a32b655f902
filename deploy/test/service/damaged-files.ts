import { open, readdir, readFile, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'

/** Damages all parts of a table. */
export async function flipPartsOf(directory: string, table: string): Promise<void> {
  for (const file of await filesOfParts(directory, table)) await flipMiddle(file)
}

/** Returns the data files of all parts of a table; at least one. */
export async function filesOfParts(directory: string, table: string): Promise<string[]> {
  const tables = join(directory, 'tables')
  const definitions = await readdir(join(tables, 'metadata'), { recursive: true })
  const definition = definitions.find((name) => name.endsWith(`/${table}.sql`)) ?? table
  const [, uuid = ''] = /UUID '([^']+)'/.exec(await readFile(join(tables, 'metadata', definition), 'utf8')) ?? []
  const store = join(tables, 'store', uuid.slice(0, 3), uuid)
  const files = (await readdir(store, { recursive: true })).filter((name) => /^(?:all|\d+)_.*\.bin$/.test(name))
  if (files.length === 0) throw new Error(`${table} has no part`)
  return files.map((file) => join(store, file))
}

/** Changes a bit in the middle of a file. */
export async function flipMiddle(path: string): Promise<void> {
  const at = Math.floor((await stat(path)).size / 2)
  const handle = await open(path, 'r+')
  const byte = Buffer.alloc(1)
  await handle.read(byte, 0, 1, at)
  byte.writeUInt8(byte.readUInt8(0) ^ 1)
  await handle.write(byte, 0, 1, at)
  await handle.close()
}

/** Cuts all pages of the log's file but the two that LMDB begins with. Half of them may be free. */
export async function cutLog(path: string): Promise<void> {
  await truncate(path, 8192)
}

/** Cuts a file in the middle. */
export async function halve(path: string): Promise<void> {
  await truncate(path, Math.floor((await stat(path)).size / 2))
}
