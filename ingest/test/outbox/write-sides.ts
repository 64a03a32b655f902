import { join } from 'node:path'
import { migratePostgres, openPglite, openPostgres, type Postgres } from '@gamenet/engines'
import { postgresPrograms, sharedPostgres } from '@gamenet/engines/testing'
import tap, { type Test, test } from 'tap'

/** A write side that tests share; each test empties the tables that it uses. */
export type WriteSideUnderTest = {
  readonly postgres: Postgres
  /** Returns a separate connection, like that of another process, if the engine allows several. */
  another(t: Test): Postgres
}

/** Declares the tests on PGlite and, where it is installed, on a PostgreSQL server. */
export function onEachWriteSide(
  declare: (name: string, open: () => WriteSideUnderTest, options: object) => void
): void {
  declareOn('PGlite', false, declare, async (t) => {
    const postgres = await openPglite({ dir: join(t.testdir({}), '..', `writes-${process.pid}`) })
    return { side: { postgres, another: () => postgres }, close: () => postgres.close() }
  })
  const programs = postgresPrograms()
  const missing = 'PostgreSQL is not installed (Debian: apt-get install postgresql)'
  const skip = programs === undefined && process.env.CI !== 'true' ? missing : false
  declareOn('PostgreSQL', skip, declare, async () => {
    if (programs === undefined) throw new Error(missing)
    const server = await sharedPostgres(tap)
    const postgres = openPostgres({ url: server.url })
    const another = (t: Test) => {
      const opened = openPostgres({ url: server.url })
      t.teardown(() => opened.close())
      return opened
    }
    return { side: { postgres, another }, close: () => postgres.close() }
  })
}

function declareOn(
  name: string,
  skip: string | false,
  declare: (name: string, open: () => WriteSideUnderTest, options: object) => void,
  start: (t: Test) => Promise<{ side: WriteSideUnderTest; close(): Promise<void> }>
): void {
  let started: Awaited<ReturnType<typeof start>> | undefined
  test(`${name} starts`, { skip }, async (t) => {
    started = await start(t)
    await migratePostgres(started.side.postgres)
  })
  declare(
    name,
    () => {
      if (started === undefined) throw new Error(`${name} did not start.`)
      return started.side
    },
    { skip }
  )
  test(`${name} stops`, { skip }, async () => {
    await started?.close()
  })
}
