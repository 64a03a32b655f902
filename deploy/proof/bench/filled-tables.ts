import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouse, openChdb } from '@gamenet/engines'
import { ALL_RIGHTS } from '@gamenet/engines/testing'
import { migrate } from '@gamenet/projector'

/** Opens tables in a folder of the run, migrates and fills them. */
export async function openFilledTables(
  path: string,
  fill: (tables: ClickHouse) => Promise<unknown>
): Promise<ClickHouse> {
  await mkdir(path, { recursive: true })
  const tables = await openChdb({ path: join(path, 'tables'), grants: ALL_RIGHTS })
  await migrate(tables.control)
  await fill(tables)
  return tables
}
