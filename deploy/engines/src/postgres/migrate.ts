import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { MIGRATION_LOCK } from '@gamenet/schemas'
import Postgrator from 'postgrator'
import type { Postgres } from './postgres.js'

const MIGRATIONS = new URL('../../../migrations/', import.meta.url)

/** The database was made by a newer program. */
export class NewerDatabase extends Error {}

/**
 * Brings the write side to the newest schema: all of `migrations/NNNN.do.noun.sql` that were not applied yet, in one
 * transaction, one process at a time.
 * @returns the names of those that were applied
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
    if (found > wanted) {
      throw new NewerDatabase(
        `The PostgreSQL database was made by a newer program: it has migration ${found}, and this program knows up to ` +
          `${wanted}. Start the newer program, or give this one another database (POSTGRES_URL, or DATA_DIR where it is embedded).`
      )
    }
    return (await postgrator.migrate()).map(({ filename }) => filename.replace(/^.*[\\/]|\.sql$/g, ''))
  })

/** The number of the newest migration that this program has. */
export const newestMigration = async (directory: URL = MIGRATIONS): Promise<number> =>
  Math.max(...(await readdir(directory)).map((name) => Number(/^(\d+)\.do\..*\.sql$/.exec(name)?.[1] ?? 0)))

/** A path as a pattern that matches it alone, whatever characters a folder's name has. */
const patternOf = (path: string): string => path.replaceAll('\\', '/').replace(/[?*()[\]{}]/g, '[$&]')
