import type { PGlite } from '@electric-sql/pglite'

/*
 * The work of a server's autovacuum and checkpointer, separate processes that PGlite lacks: deleted or replaced rows would stay in
 * the files forever, after 2^31 transactions PostgreSQL refuses writes, and the write-ahead log would grow until the next start,
 * which reads all of it after a crash.
 */

/**
 * PGlite does up to 1,000 writes a second, so at most 10,000 dead rows of the outbox: 4 MB. Their vacuum takes 40 ms.
 */
const EVERY_MS = 10_000
/** Minimum of dead rows for a vacuum, besides a fifth of all rows. */
const DEAD_MIN = 1000
const DEAD_SHARE = 0.2
/** Age in transactions of the 2^31 available; a server freezes at 200 M. */
const FREEZE_AT_AGE = 100_000_000

/** Size of the write-ahead log since the last checkpoint: some 40,000 writes. */
const LOG_BYTES_MAX = 64 * 2 ** 20

type Limits = { readonly freezeAtAge?: number | undefined; readonly logBytesMax?: number | undefined }
export type UpkeepOptions = Limits & { readonly everyMs?: number | undefined }

/** Checks every 10 s what there is to do, until it is stopped. Checks do not overlap. */
export const startUpkeep = (database: PGlite, { everyMs = EVERY_MS, ...limits }: UpkeepOptions = {}) => {
  let looking: Promise<void> = Promise.resolve()
  let isLooking = false
  const timer = setInterval(() => {
    if (isLooking) return
    isLooking = true
    // On a full disk, for example. The next check retries; the age of transactions is a metric.
    looking = upkeep(database, limits)
      .catch(() => undefined)
      .finally(() => {
        isLooking = false
      })
  }, everyMs).unref()
  return {
    stop: async (): Promise<void> => {
      clearInterval(timer)
      await looking
    }
  }
}

/** Shortens a long write-ahead log; vacuums tables with many dead rows, and everything when transactions are old. */
export const upkeep = async (
  database: PGlite,
  { freezeAtAge = FREEZE_AT_AGE, logBytesMax = LOG_BYTES_MAX }: Limits = {}
): Promise<void> => {
  const { rows: long } = await database.query(
    'SELECT FROM pg_control_checkpoint() AS c WHERE pg_current_wal_lsn() - c.redo_lsn > $1::numeric',
    [logBytesMax]
  )
  if (long.length > 0) await database.exec('CHECKPOINT').catch(() => undefined)
  const dead = await database.query<{ name: string }>(
    `SELECT format('%I.%I', s.schemaname, s.relname) AS name FROM pg_stat_all_tables AS s
     WHERE s.n_dead_tup > $1::float8 + $2::float8 * s.n_live_tup`,
    [DEAD_MIN, DEAD_SHARE]
  )
  // One statement each, so that other requests are answered in between.
  // A damaged table, which its readers report, must not keep the others from being vacuumed; nor must a failed checkpoint.
  for (const { name } of dead.rows) await database.exec(`VACUUM ${name}`).catch(() => undefined)
  const old = await database.query<{ name: string; is_ours: boolean }>(
    `SELECT format('%I', d.datname) AS name, d.datname = current_database() AS is_ours FROM pg_database AS d
     WHERE age(d.datfrozenxid) > $1::int`,
    [freezeAtAge]
  )
  for (const { name, is_ours: isOurs } of old.rows) {
    if (isOurs) await database.exec('VACUUM FREEZE')
    else await dropTemplate(database, name)
  }
}

/** Drops `template0` and `template1`. They age too, cannot be vacuumed here, and no database is created from them. */
const dropTemplate = async (database: PGlite, name: string): Promise<void> => {
  await database.exec(`ALTER DATABASE ${name} IS_TEMPLATE false`)
  await database.exec(`DROP DATABASE ${name}`)
}
