import { linesOf, operation } from './operation.js'

/** Creates the table of migrations, unless it is there. */
export const createMigrationTable = operation('creates the table of migrations', async (tables): Promise<void> => {
  await tables.execute(
    `CREATE TABLE IF NOT EXISTS schema_migration (
      name String,
      checksum String,
      applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
    ) ENGINE = ReplacingMergeTree(applied_at) ORDER BY name`
  )
})

/** Reads the checksums of the applied migrations, by name, in their order. */
export const readMigrationsApplied = operation('reads applied migrations', async (tables) => {
  const rows = await tables.rows(
    'SELECT m.name AS name, m.checksum AS checksum FROM schema_migration AS m FINAL ORDER BY m.name'
  )
  return new Map(rows.map((row) => [String(row.name), String(row.checksum)]))
})

/** Records that a migration was applied. */
export const storeMigrationApplied = operation(
  'stores an applied migration',
  async (tables, name: string, checksum: string): Promise<void> => {
    await tables.insert('schema_migration', ['name', 'checksum'], linesOf([[name, checksum]]))
  }
)
