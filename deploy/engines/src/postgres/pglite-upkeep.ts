import type { PGlite } from '@electric-sql/pglite'

/*
 * The work of a server's autovacuum and checkpointer, separate processes that PGlite lacks: deleted or replaced rows
 * would stay in the files forever, after 2^31 transactions PostgreSQL refuses writes, and the write-ahead log would
 * grow until the next start, which reads all of it after a crash.
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

export type UpkeepLimits = { readonly freezeAtAge?: number | undefined; readonly logBytesMax?: number | undefined }

/**
 * Runs `check` regularly, one at a time, and reports how each ended, until it is stopped. A failed one is repeated by
 * the next.
 */
export const startUpkeep = (
  check: () => Promise<void>,
  onChecked: (failure?: unknown) => void,
  everyMs: number = EVERY_MS
) => {
  let checking: Promise<void> = Promise.resolve()
  let isChecking = false
  const timer = setInterval(() => {
    if (isChecking) return
    isChecking = true
    checking = check()
      .then(() => onChecked(), onChecked)
      .finally(() => {
        isChecking = false
      })
  }, everyMs).unref()
  return {
    stop: async (): Promise<void> => {
      clearInterval(timer)
      await checking
    }
  }
}

/**
 * Shortens a long write-ahead log; vacuums tables with many dead rows, and everything when transactions are old. A
 * failed one does not keep it from the others; the first failure is thrown at the end.
 */
export const upkeep = async (
  database: PGlite,
  { freezeAtAge = FREEZE_AT_AGE, logBytesMax = LOG_BYTES_MAX }: UpkeepLimits = {}
): Promise<void> => {
  const { rows: long } = await database.query(
    'SELECT FROM pg_control_checkpoint() AS c WHERE pg_current_wal_lsn() - c.redo_lsn > $1::numeric',
    [logBytesMax]
  )
  const failures: unknown[] = []
  const attempt = (work: Promise<unknown>) => work.catch((error: unknown) => failures.push(error))
  if (long.length > 0) await attempt(database.exec('CHECKPOINT'))
  const dead = await database.query<{ name: string }>(
    `SELECT format('%I.%I', s.schemaname, s.relname) AS name FROM pg_stat_all_tables AS s
     WHERE s.n_dead_tup > $1::float8 + $2::float8 * s.n_live_tup`,
    [DEAD_MIN, DEAD_SHARE]
  )
  // One statement each, so that other requests are answered in between.
  // A damaged table must not keep the others from being vacuumed.
  for (const { name } of dead.rows) await attempt(database.exec(`VACUUM ${name}`))
  const old = await database.query<{ name: string; is_ours: boolean }>(
    `SELECT format('%I', d.datname) AS name, d.datname = current_database() AS is_ours FROM pg_database AS d
     WHERE age(d.datfrozenxid) > $1::int`,
    [freezeAtAge]
  )
  for (const { name, is_ours: isOurs } of old.rows)
    await attempt(isOurs ? database.exec('VACUUM FREEZE') : dropTemplate(database, name))
  if (failures.length > 0) throw failures[0]
}

/** Drops `template0` and `template1`. They age too, cannot be vacuumed here, and no database is created from them. */
const dropTemplate = async (database: PGlite, name: string): Promise<void> => {
  await database.exec(`ALTER DATABASE ${name} IS_TEMPLATE false`)
  await database.exec(`DROP DATABASE ${name}`)
}
