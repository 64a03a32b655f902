import { type ClickHouse, openChdb } from '@gamenet/engines'
import { ALL_RIGHTS } from '@gamenet/engines/testing'
import { migrate } from '@gamenet/projector'

/** Opens tables in a new folder, migrates and fills them. */
export async function openFilledTables(
  path: string,
  fill: (tables: ClickHouse) => Promise<unknown>
): Promise<ClickHouse> {
  const tables = await openChdb({ path, grants: ALL_RIGHTS })
  await migrate(tables.control)
  await fill(tables)
  return tables
}
