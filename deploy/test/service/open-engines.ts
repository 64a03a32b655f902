import { join } from 'node:path'
import { migratePostgres, openChdb, openPglite, openPostgres } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { postgresPrograms, sharedPostgres } from '@gamenet/engines/testing'
import { migrate } from '@gamenet/projector'
import type { Test } from 'tap'

/**
 * Opens embedded tables and an embedded log in directories of the test, and a database on the run's PostgreSQL, which takes less
 * processor time than PGlite (used if PostgreSQL is not installed); all migrated, until the test ends.
 */
export async function openTestEngines(t: Test) {
  const dir = t.testdir({})
  const tables = await openChdb({ path: join(dir, 'tables') })
  t.teardown(() => tables.close())
  await migrate(tables.control)
  const log = openEmbeddedLog({ path: join(dir, 'log'), epoch: 1 })
  t.teardown(() => log.close())
  const writes =
    postgresPrograms() === undefined
      ? await openPglite({ dir: join(dir, 'writes') })
      : openPostgres(await sharedPostgres(t))
  t.teardown(() => writes.close())
  await migratePostgres(writes)
  return { tables, log, writes }
}
