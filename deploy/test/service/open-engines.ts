import { join } from 'node:path'
import { migratePostgres, openChdb, openPglite, openPostgres, type Postgres } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { ALL_RIGHTS, postgresPrograms, sharedPostgres } from '@gamenet/engines/testing'
import { migrate } from '@gamenet/projector'
import type { Test } from 'tap'

/** Opens embedded tables and an embedded log in directories of the test, and a write side; all migrated, until the test ends. */
export async function openTestEngines(t: Test) {
  const dir = t.testdir({})
  const tables = await openChdb({ path: join(dir, 'tables'), grants: ALL_RIGHTS })
  t.teardown(() => tables.close())
  await migrate(tables.control)
  const log = openEmbeddedLog({ path: join(dir, 'log'), epoch: 1 })
  t.teardown(() => log.close())
  return { tables, log, writes: await openTestWrites(t, dir) }
}

/**
 * Opens a migrated database on the run's PostgreSQL, which takes less processor time than PGlite, until the test ends; without an
 * installed PostgreSQL, PGlite below the directory.
 */
export async function openTestWrites(t: Test, directory: string): Promise<Postgres> {
  const writes =
    postgresPrograms() === undefined
      ? await openPglite({ dir: join(directory, 'writes') })
      : openPostgres(await sharedPostgres(t))
  t.teardown(() => writes.close())
  await migratePostgres(writes)
  return writes
}
