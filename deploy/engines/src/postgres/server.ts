import { Refusal } from '@gamenet/schemas'
import pg from 'pg'
import { DISK_FULL, diskFull } from './disk-full.js'
import { listenToServer, plainName } from './listen.js'
import type { Postgres, Queries } from './postgres.js'

export type PostgresOptions = {
  /** `postgres://user:password@host:port/database` */
  readonly url: string
  /** An address at which LISTEN works, where `url` is a pooler that gives each transaction another connection (PgBouncer). */
  readonly listenUrl?: string | undefined
  /** By channel, a statement whose rows differ after every announced change. It is polled if LISTEN delivers nothing. */
  readonly polled?: Readonly<Record<string, string>>
  readonly connections?: number
  readonly connectTimeoutMs?: number
  /** Limit of a statement in a transaction, enforced by the server. */
  readonly statementTimeoutMs?: number
  /** Longest wait for an answer: longer than the server's own limit, which gives a better error. */
  readonly answerTimeoutMs?: number
}

const AWAY_RETRY_SECONDS = 5

/** Opens a PostgreSQL server. No request is sent here: a service may start before its server. */
export const openPostgres = (options: PostgresOptions): Postgres => {
  // No parameter that PgBouncer refuses at the start of a connection, such as statement_timeout.
  const config = {
    connectionString: verified(options.url),
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5000,
    query_timeout: options.answerTimeoutMs ?? 20_000,
    keepAlive: true,
    application_name: 'gamenet-stats'
  }
  const pool = new pg.Pool({ ...config, max: options.connections ?? 8 })
  // A connection that breaks while unused is replaced at the next statement, which reports a persisting fault.
  pool.on('error', () => undefined)
  const statementTimeoutMs = options.statementTimeoutMs ?? 15_000
  const listeners = new Set<() => Promise<void>>()
  const notified = new Set<object>()
  let closing: Promise<void> | undefined
  return {
    ...queriesOn(pool),
    transaction: (work) => transaction(pool, statementTimeoutMs, work),
    listen: (channel, onPayload, onListening) => {
      const self = {}
      const end = listenToServer(
        {
          onDelivery: (isDelivered) => void (isDelivered ? notified.add(self) : notified.delete(self)),
          config: { ...config, connectionString: verified(options.listenUrl ?? options.url) },
          queries: queriesOn(pool),
          poll: options.polled?.[channel]
        },
        channel,
        onPayload,
        onListening
      )
      listeners.add(end)
      return async () => {
        listeners.delete(end)
        await end()
      }
    },
    erase: async (tables) => {
      // With new statistics: the old ones contain values of deleted rows.
      for (const table of tables) await queriesOn(pool).query(`VACUUM (ANALYZE) ${plainName(table)}`)
    },
    stats: () => ({
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      deafListeners: listeners.size - notified.size
    }),
    check: async () => {
      await queriesOn(pool).query('SELECT 1')
    },
    close: () => {
      closing ??= Promise.all([...listeners].map((end) => end())).then(() => pool.end())
      return closing
    }
  }
}

/** The driver verifies the server's certificate in these modes too, and warns that a later version will not. */
const verified = (url: string): string =>
  /[?&]uselibpqcompat=true/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full')

const queriesOn = (target: Pick<pg.Pool, 'query'> | pg.PoolClient): Queries => ({
  query: async <Row extends Record<string, unknown>>(sql: string, values: readonly unknown[] = []) => {
    try {
      return (await target.query<Row>(sql, [...values])).rows
    } catch (cause) {
      throw failure(cause)
    }
  },
  // Without values the driver sends the text as it is, and the server accepts any number of statements.
  script: async (sql) => {
    try {
      await target.query(sql)
    } catch (cause) {
      throw failure(cause)
    }
  }
})

const transaction = async <Result>(
  pool: pg.Pool,
  statementTimeoutMs: number,
  work: (queries: Queries) => Promise<Result>
): Promise<Result> => {
  const client = await pool.connect().catch((cause: unknown) => {
    throw failure(cause)
  })
  // A connection that breaks between two statements reports it here; the next statement rejects.
  const ignore = (): void => undefined
  client.on('error', ignore)
  const queries = queriesOn(client)
  let isBroken = true
  try {
    await queries.script(`BEGIN; SET LOCAL statement_timeout = ${statementTimeoutMs}`)
    const result = await work(queries)
    await queries.query('COMMIT')
    isBroken = false
    return result
  } catch (error) {
    // An unavailable server rolls back automatically when the connection is closed.
    isBroken =
      isUnavailable(error) ||
      (await queries.query('ROLLBACK').then(
        () => false,
        () => true
      ))
    throw error
  } finally {
    client.off('error', ignore)
    client.release(isBroken)
  }
}

const isUnavailable = (error: unknown): boolean => error instanceof Refusal && error.code === 'engine_away'

/**
 * SQLSTATE classes 08 (connection), 28 and 3D (refuses the user or the database), 57P (shutting down) and 53300 (too many
 * connections): faults of the server, not of the statement.
 */
const failure = (cause: unknown): unknown => {
  const code = cause instanceof pg.DatabaseError ? (cause.code ?? '') : undefined
  if (code === DISK_FULL) return diskFull(cause)
  const isStatement = code !== undefined && !/^(08|28|3D|57P|53300)/.test(code)
  if (isStatement || cause instanceof TypeError) return cause
  return new Refusal('engine_away', ['PostgreSQL'], { retryAfterSeconds: AWAY_RETRY_SECONDS, cause })
}
