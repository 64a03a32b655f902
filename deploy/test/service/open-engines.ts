import { join } from 'node:path'
import { migratePostgres, openChdb, openPglite } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { migrate } from '@gamenet/projector'
import type { Test } from 'tap'

/** Opens the three embedded engines in directories of the test, migrated, until the test ends. */
export async function openTestEngines(t: Test) {
  const dir = t.testdir({})
  const tables = await openChdb({ path: join(dir, 'tables') })
  t.teardown(() => tables.close())
  await migrate(tables.control)
  const log = openEmbeddedLog({ path: join(dir, 'log'), epoch: 1 })
  t.teardown(() => log.close())
  const writes = await openPglite({ dir: join(dir, 'writes') })
  t.teardown(() => writes.close())
  await migratePostgres(writes)
  return { tables, log, writes }
}
