import { migratePostgres, type Postgres, type Queries } from '@gamenet/engines'
import { UsageError } from '../../config.js'

/** What is moved. Leases and positions in the log are those of the log that is left behind. */
export const MOVED = ['person', 'erasure', 'erasure_salt', 'profile', 'rating', 'outbox']
const BATCH_ROWS = 5000

/**
 * Copies the write side into an empty database, all or nothing: people with their keys, the erasure ledger, profiles,
 * ratings and what waits for the log. Migrates the target first. Returns the number of rows. Throws a
 * {@link UsageError} if the target has data.
 */
export async function copyWrites(from: Postgres, to: Postgres): Promise<number> {
  await migratePostgres(to)
  return await to.transaction(async (target) => {
    for (const table of MOVED) await refuseRows(target, table)
    await target.query('DELETE FROM erasure_salt')
    let copied = 0
    for (const table of MOVED) copied += await copyTable(from, target, table)
    const sequences = await from.query('SELECT sequencename, last_value FROM pg_sequences WHERE last_value IS NOT NULL')
    for (const { sequencename, last_value } of sequences)
      await target.query('SELECT setval($1::regclass, $2)', [sequencename, last_value])
    return copied
  })
}

/** A new database has a salt of its own, with which nothing was hashed as long as the ledger is empty. */
async function refuseRows(target: Queries, table: string): Promise<void> {
  const rows = table === 'erasure_salt' ? [] : await target.query(`SELECT 1 FROM ${table} LIMIT 1`)
  if (rows.length > 0)
    throw new UsageError(
      `The database of POSTGRES_URL has rows in ${table}, and a write side can only be moved into an empty one. ` +
        'Create another database, and name it in POSTGRES_URL.'
    )
}

async function copyTable(from: Postgres, target: Queries, table: string): Promise<number> {
  let copied = 0
  for (;;) {
    // As text: a number of JSON loses digits of bigint.
    const rows = await from.query(
      `SELECT to_jsonb(t)::text AS row FROM ${table} AS t ORDER BY t LIMIT ${BATCH_ROWS} OFFSET ${copied}`
    )
    if (rows.length === 0) return copied
    await target.query(
      `INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb)`,
      [`[${rows.map(({ row }) => row).join(',')}]`]
    )
    copied += rows.length
  }
}
