import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Failure, MIGRATION_LOCK } from '@gamenet/schemas'
import Postgrator from 'postgrator'
import type { Postgres } from './postgres.js'

const MIGRATIONS = new URL('../../../migrations/', import.meta.url)

/**
 * Migrates the write side to the newest schema: all pending `migrations/NNNN.do.noun.sql` in one transaction, one
 * process at a time.
 * @returns the names of the applied migrations
 * @throws when an applied file was changed, or a {@link NewerDatabase}
 */
export const migratePostgres = (postgres: Postgres, directory: URL = MIGRATIONS): Promise<string[]> =>
  postgres.transaction(async (transaction) => {
    await transaction.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
    const postgrator = new Postgrator({
      driver: 'pg',
      migrationPattern: `${patternOf(fileURLToPath(directory))}*.sql`,
      schemaTable: 'schema_migration',
      execQuery: async (sql) => ({ rows: await transaction.query(sql) }),
      execSqlScript: (sql) => transaction.script(sql)
    })
    const wanted = await postgrator.getMaxVersion()
    const found = await postgrator.getDatabaseVersion()
    if (found > wanted)
      throw new Failure(
        'newer_store',
        `The PostgreSQL database was created by a newer program: it has migration ${found}, and this program knows ` +
          `up to ${wanted}. Start the newer program, or give this one another database (POSTGRES_URL, or DATA_DIR ` +
          'where it is embedded).'
      )
    return (await postgrator.migrate()).map(({ filename }) => filename.replace(/^.*[\\/]|\.sql$/g, ''))
  })

/** Returns the number of this program's newest migration. */
export const newestMigration = async (directory: URL = MIGRATIONS): Promise<number> =>
  Math.max(...(await readdir(directory)).map((name) => Number(/^(\d+)\.do\..*\.sql$/.exec(name)?.[1] ?? 0)))

/** Escapes a path for use as a pattern. */
const patternOf = (path: string): string => path.replaceAll('\\', '/').replace(/[?*()[\]{}]/g, '[$&]')
